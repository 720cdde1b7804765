use std::collections::BTreeMap;

use provenir_execution::Failure;
use provenir_table::Table;

/// The seconds of training at the end of each epoch, of which there is one at least. Invariant: finite, not negative, and not
/// falling from epoch to epoch.
pub(crate) struct Clock {
    seconds: BTreeMap<u32, f64>,
    last: (u32, f64),
}

impl Clock {
    pub(crate) fn from_table(table: &Table) -> Result<Self, Failure> {
        let rows = table
            .column_u32("epoch")?
            .iter()
            .zip(table.column_f64("seconds")?);
        let mut seconds = BTreeMap::new();
        for (epoch, at) in rows {
            if !(at.is_finite() && *at >= 0.0) {
                return Err(wrong(&format!("epoch {epoch} ends after {at} seconds")));
            }
            if seconds.insert(*epoch, *at).is_some() {
                return Err(wrong(&format!("epoch {epoch} is there twice")));
            }
        }
        let mut before = 0.0;
        for (epoch, at) in &seconds {
            if *at < before {
                return Err(wrong(&format!(
                    "epoch {epoch} ends after {at} seconds, an earlier one after {before}"
                )));
            }
            before = *at;
        }
        let Some((epoch, at)) = seconds.last_key_value() else {
            return Err(wrong("there is no epoch"));
        };
        Ok(Self {
            last: (*epoch, *at),
            seconds,
        })
    }

    /// The seconds of training up to a checkpoint, which is called by its number of epochs.
    pub(crate) fn at(&self, checkpoint: u32) -> Result<f64, Failure> {
        // Before the first epoch no time has passed.
        if checkpoint == 0 {
            return Ok(0.0);
        }
        self.seconds.get(&checkpoint).copied().ok_or_else(|| {
            Failure::stage(format!(
                "the policy has a checkpoint after {checkpoint} epochs, and the input `timing` says nothing of that epoch"
            ))
            .help("wire `trials` and `timing` from one training")
        })
    }

    /// The last epoch, and the seconds at its end.
    pub(crate) fn last(&self) -> (u32, f64) {
        self.last
    }
}

fn wrong(what: &str) -> Failure {
    Failure::stage(format!("the input `timing` is not that of a training: {what}"))
        .help("wire `timing` of a `train` stage")
}
