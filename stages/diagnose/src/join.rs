use std::collections::BTreeMap;

use provenir_execution::Failure;
use provenir_table::{Matrix, Table};

/// What a table says of samples, by their numbers.
pub(crate) struct Samples<'a> {
    /// The port at which the table arrived.
    port: &'a str,
    rows: BTreeMap<u64, usize>,
}

impl<'a> Samples<'a> {
    /// The samples of the table at a port; each is there once.
    pub(crate) fn new(port: &'a str, samples: &[u64]) -> Result<Self, Failure> {
        let mut rows = BTreeMap::new();
        for (row, sample) in samples.iter().enumerate() {
            if rows.insert(*sample, row).is_some() {
                return Err(Failure::stage(format!(
                    "the table at `{port}` holds the sample {sample} twice; a sample's number is its identity"
                )));
            }
        }
        Ok(Self { port, rows })
    }

    /// The row of each of these samples, which are those of the table at another port.
    pub(crate) fn rows_of(&self, samples: &[u64], other: &str) -> Result<Vec<usize>, Failure> {
        let row = |sample: &u64| {
            self.rows.get(sample).copied().ok_or_else(|| {
                Failure::stage(format!(
                    "the sample {sample} at `{other}` is not among those at `{}`",
                    self.port
                ))
                .help("wire all ports from the same demonstrations")
            })
        };
        samples.iter().map(row).collect()
    }
}

/// Which of these samples of the demonstrations are corrupted.
pub(crate) fn corrupted(mask: &Table, samples: &[u64]) -> Result<Vec<bool>, Failure> {
    let flags = mask.column_bool("corrupted")?;
    let rows = Samples::new("mask", mask.column_u64("sample")?)?.rows_of(samples, "demos")?;
    Ok(rows.into_iter().map(|row| flags[row]).collect())
}

/// A column of fixed-size lists at these rows.
pub(crate) fn lists(table: &Table, column: &str, rows: &[usize]) -> Result<Matrix, Failure> {
    let (width, values) = table.column_fixed_list_f32(column)?;
    if let Some(value) = values.iter().find(|value| !value.is_finite()) {
        return Err(Failure::stage(format!(
            "column `{column}` holds {value}, which is not a finite number"
        )));
    }
    Ok(Matrix::new(width, values.to_vec())?.select(rows))
}
