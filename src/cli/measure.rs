//! Bytes, times and platforms as people read and write them.

use std::collections::BTreeMap;
use std::time::Duration;

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

/// A number of things: `1 result`, `2,000 results`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", crate::display::grouped(number))
}

/// A numeric platform in a line.
pub(super) fn platform(platform: &BTreeMap<String, String>) -> String {
    let told: Vec<String> = platform
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
