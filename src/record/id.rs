use std::fmt;

use jiff::{Timestamp, ToSpan};
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use crate::clock;

/// The name of a run: the time at which it began (UTC, to the millisecond), so that names sort as runs did, and four
/// characters that tell runs of one instant apart. Where the clock went back, the time is that after the run before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new name.
    pub fn new() -> Self {
        Self::at(clock::now())
    }

    /// A new name, for a run that comes after another one: where the clock has gone back since, the instant after that one, so
    /// that names sort as runs did, whatever the clock says (a logical clock that follows the physical one: Kulkarni et al.,
    /// "Logical Physical Clocks", 2014).
    pub fn after(latest: Option<&Self>) -> Self {
        let new = Self::new();
        let Some(latest) = latest.filter(|latest| **latest >= new) else {
            return new;
        };
        let began = format!("{}+0000", &latest.0[..Self::MOMENT]);
        let began = Timestamp::strptime("%Y%m%d-%H%M%S.%3f%z", began).ok();
        let next = began.and_then(|began| began.checked_add(1.millisecond()).ok());
        next.map_or(new, Self::at)
    }

    /// Characters that tell the time.
    const MOMENT: usize = 19;

    fn at(now: Timestamp) -> Self {
        let entropy = format!("{} {}", clock::now().as_nanosecond(), std::process::id());
        let suffix = &Digest::of(entropy.as_bytes()).hex()[..4];
        Self(format!("{}-{suffix}", Self::moment(now)))
    }

    /// What the name of a run begins with that began at a moment.
    pub fn moment(time: Timestamp) -> String {
        time.strftime("%Y%m%d-%H%M%S.%3f").to_string()
    }

    /// A name that a folder has, if it is one of ours.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let digits = |part: Option<&str>, length: usize| {
            part.is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (date, time) = (parts.next(), parts.next().and_then(|time| time.split_once('.')));
        let ours = digits(date, 8)
            && digits(time.map(|(seconds, _)| seconds), 6)
            && digits(time.map(|(_, fraction)| fraction), 3)
            && parts
                .next()
                .is_some_and(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            && parts.next().is_none();
        ours.then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a person may mean this run by `text`: its beginning, or its last four characters.
    pub fn answers_to(&self, text: &str) -> bool {
        !text.is_empty() && (self.0.starts_with(text) || self.0.rsplit('-').next() == Some(text))
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_sorts_after_the_one_before_whatever_the_clock_says() {
        let earlier = RunId::parse("20200101-000000.000-abcd").unwrap();
        let now = RunId::after(Some(&earlier));
        assert!(now.as_str() > "20250101" && now.as_str() < "2500");
        for (later, next) in [
            ("29991231-235959.999-zzzz", "30000101-000000.000-"),
            ("25000228-120000.004-zzzz", "25000228-120000.005-"),
        ] {
            let later = RunId::parse(later).unwrap();
            let after = RunId::after(Some(&later));
            assert!(after > later && after.as_str().starts_with(next), "{after}");
            assert_eq!(RunId::parse(after.as_str()), Some(after));
        }
        // What comes after the end of time comes now.
        let last = RunId::parse("99991231-235959.999-zzzz").unwrap();
        assert!(RunId::after(Some(&last)).as_str() < "2500");
    }

    #[test]
    fn new_names_are_names_and_sort_by_time() {
        let name = RunId::new();
        assert_eq!(RunId::parse(name.as_str()), Some(name.clone()));
        assert!(name.as_str() > "20250101-000000.000-0000");
        assert!(name.answers_to(&name.as_str()[..10]) && name.answers_to(&name.as_str()[20..]));
        assert!(!name.answers_to("") && !name.answers_to("x"));
        for other in [
            "noop.jsonl",
            "gc.jsonl",
            "20251128",
            "20251128-015212.345-7k3f-x",
            "20251128-015212.345-../x",
            "2025112a-015212.345-7k3f",
            "20251128-015212-7k3f",
        ] {
            assert_eq!(RunId::parse(other), None);
        }
    }
}
