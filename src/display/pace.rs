use std::time::Instant;

use provenir_api::protocol::Progress;

use super::sentence::{duration, progress};
use crate::clock;

/// How fast a cell gets on.
#[derive(Default)]
pub(super) struct Pace {
    /// When it first told how far it was, and how far: what an earlier attempt left took none of this one's time.
    first: Option<(Instant, u64)>,
}

impl Pace {
    /// Takes note of how far a cell is.
    pub(super) fn note(&mut self, report: &Progress) {
        self.first.get_or_insert_with(|| (clock::instant(), report.done));
    }

    /// How far a cell is, and how long the rest of it takes if it goes on as fast, in words.
    pub(super) fn tell(&mut self, report: &Progress) -> String {
        let (since, before) = *self.first.get_or_insert((clock::instant(), report.done));
        let told = progress(report);
        match report.total {
            Some(total) if report.done > before && report.done < total => {
                let rest = since.elapsed().as_secs_f64() * (total - report.done) as f64
                    / (report.done - before) as f64;
                format!("{told}, {} left", duration(rest))
            }
            _ => told,
        }
    }
}
