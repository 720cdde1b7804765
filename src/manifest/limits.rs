//! What a cell may take of the machine, of time and of patience: none of it is in a key.

use std::time::Duration;

use super::diagnostic::Report;
use super::expect::{known_keys, optional_table};
use super::model::ResourcesDecl;
use super::node::{Data, Node, Table};
use crate::number::grouped_u64;
use crate::plan::Attempts;

/// Longest `timeout`: a year.
const LONGEST: u64 = 366 * 24 * 3600;
/// Most `retries`.
const RETRIES: i64 = 100;

pub(super) fn read_resources(table: &Table, report: &mut Report) -> ResourcesDecl {
    const CORES: i64 = 1 << 12;
    const MEMORY: i64 = 1 << 30;
    let Some(declared) = optional_table(table, "resources", report) else {
        return ResourcesDecl::default();
    };
    known_keys(declared, "key of `resources`", &["cores", "memory"], report);
    let mut number = |key: &str, unit: &str, most: i64| {
        let node = &declared.get(key)?.node;
        match node.data {
            Data::Integer(value) if (1..=most).contains(&value) => Some(value),
            Data::Invalid => None,
            _ => {
                let most = grouped_u64(most.unsigned_abs());
                let message = format!("`{key}` must be a whole number of {unit} from 1 to {most}");
                report.error(node.span, message);
                None
            }
        }
    };
    let cores = number("cores", "cores", CORES).and_then(|value| u32::try_from(value).ok());
    let memory = number("memory", "MiB", MEMORY).and_then(|value| u64::try_from(value).ok());
    ResourcesDecl::new(cores, memory)
}

/// How long a cell may take, and how often it may try.
pub(super) fn read_attempts(table: &Table, report: &mut Report) -> Attempts {
    let timeout = table
        .get("timeout")
        .and_then(|entry| read_timeout(&entry.node, report));
    let retries = table.get("retries").and_then(|entry| match entry.node.data {
        Data::Integer(value) if (0..=RETRIES).contains(&value) => u32::try_from(value).ok(),
        Data::Invalid => None,
        _ => {
            report.error(
                entry.node.span,
                format!("`retries` must be a whole number from 0 to {RETRIES}"),
            );
            None
        }
    });
    Attempts {
        timeout,
        retries: retries.unwrap_or_default(),
    }
}

/// A number of seconds, or a text such as `90s`, `30m`, `12h`, `2d`.
fn read_timeout(node: &Node, report: &mut Report) -> Option<Duration> {
    let seconds = match &node.data {
        Data::Invalid => return None,
        Data::Integer(seconds) => u64::try_from(*seconds).ok(),
        _ => node.as_text().and_then(seconds),
    };
    let found = seconds.filter(|seconds| (1..=LONGEST).contains(seconds));
    if found.is_none() {
        report
            .error(node.span, "`timeout` must be a time from one second to a year")
            .help("write seconds as a number, or a text with a unit: \"90s\", \"30m\", \"12h\", \"2d\"");
    }
    found.map(Duration::from_secs)
}

fn seconds(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return None,
    };
    let number = &text[..text.len() - 1];
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| number.parse::<u64>().ok()?.checked_mul(unit))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [("90s", 90), ("30m", 1800), ("12h", 43_200), ("2d", 172_800)] {
            assert_eq!(seconds(text), Some(expected));
        }
        for wrong in [
            "",
            "s",
            "90",
            "1.5h",
            "-1s",
            "1 h",
            "99999999999999999999s",
            "9999999999999999d",
            "5µ",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
