//! The engine's clock: the one place that reads the time. It reaches records, events, leases and the display, never a
//! key or a result.

use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

/// The time of day, for records.
#[expect(clippy::disallowed_methods, reason = "the engine's clock module")]
pub(crate) fn now() -> Timestamp {
    // The system clock can be set beyond what a timestamp holds; records then carry the epoch rather than nothing.
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A point on the monotonic clock, for durations.
#[expect(clippy::disallowed_methods, reason = "the engine's clock module")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// How long ago a file's time stamp is, in nanoseconds since the epoch; zero where it lies in the future.
pub(crate) fn age(nanoseconds: i128) -> Duration {
    let now = now().as_nanosecond();
    u64::try_from(now - nanoseconds).map_or(Duration::ZERO, Duration::from_nanos)
}
