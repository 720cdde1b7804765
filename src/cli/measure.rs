//! Bytes and times as people read and write them.

use std::time::Duration;

use serde_json::Number;

/// Bytes in the largest unit that matters: `393 bytes`, `1.2 MiB`.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} byte{}", if count == 1 { "" } else { "s" });
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A time as a number and a unit: `90s`, `30m`, `12h`, `7d`, `2w`; `0` needs none.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.len()
        - text
            .trim_start_matches(|letter: char| letter.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        "" if number == "0" => 1,
        _ => 0,
    };
    match number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds))
    {
        Some(total) if seconds > 0 => Ok(Duration::from_secs(total)),
        _ => Err("write a whole number and a unit: 90s, 30m, 12h, 7d or 2w".to_owned()),
    }
}

/// A number of processor cores.
pub(super) fn parse_jobs(text: &str) -> Result<u32, String> {
    const MOST: u32 = 65_536;
    match text.parse() {
        Ok(jobs @ 1..=MOST) => Ok(jobs),
        _ => Err(format!(
            "write how many processor cores cells may occupy together, from 1 to {}; without the option, all are used",
            crate::display::grouped(MOST as usize)
        )),
    }
}

/// A number of things, of which none would be nothing to ask for.
pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("write a whole number from 1".to_owned()),
    }
}

/// A share of something: above 0, at most 1.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("write a number above 0 and at most 1, such as 1e-6".to_owned()),
    }
}

/// A number as a parameter takes it, whose schema says which ones it takes.
pub(super) fn parse_number(text: &str) -> Result<Number, String> {
    let whole = text
        .parse::<u64>()
        .map(Number::from)
        .or_else(|_| text.parse::<i64>().map(Number::from));
    whole
        .ok()
        .or_else(|| text.parse().ok().and_then(Number::from_f64))
        .ok_or_else(|| "write a number, such as 20 or 0.5".to_owned())
}

/// A number of things: `1 result`, `2,000 results`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", crate::display::grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_type_and_what_is_none_is_refused() {
        assert_eq!(parse_number("18446744073709551615"), Ok(Number::from(u64::MAX)));
        assert_eq!(parse_number("-1"), Ok(Number::from(-1)));
        assert_eq!(parse_number("0.5").map(|number| number.as_f64()), Ok(Some(0.5)));
        for text in ["nan", "inf", "-inf", "1e999", "", "1s"] {
            assert!(parse_number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_told_in_the_unit_that_matters() {
        assert_eq!(
            [0, 1, 1023, 1024, 1536, 3 << 20, u64::MAX].map(bytes),
            [
                "0 bytes",
                "1 byte",
                "1023 bytes",
                "1.0 KiB",
                "1.5 KiB",
                "3.0 MiB",
                "16384.0 PiB"
            ]
        );
    }

    #[test]
    fn what_is_counted_is_at_least_one() {
        assert_eq!(parse_count("1"), Ok(1));
        for wrong in ["0", "-1", "1.5", "99999999999999999999", ""] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_part_of_the_whole() {
        assert_eq!(parse_share("1e-6"), Ok(1e-6));
        assert_eq!(parse_share("1"), Ok(1.0));
        for wrong in ["0", "-1", "1.1", "nan", "inf", ""] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cells_get_at_least_one_core() {
        assert_eq!(parse_jobs("1"), Ok(1));
        assert_eq!(parse_jobs("65536"), Ok(65_536));
        for wrong in ["0", "-1", "65537", "all", ""] {
            assert!(
                parse_jobs(wrong).unwrap_err().contains("from 1 to 65,536"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, seconds) in [
            ("0", 0),
            ("90s", 90),
            ("2m", 120),
            ("1h", 3600),
            ("7d", 604_800),
            ("2w", 1_209_600),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "7",
            "d",
            "1.5h",
            "-1d",
            "7 d",
            "99999999999999999999d",
            "9999999999999999w",
        ] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
