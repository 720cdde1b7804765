//! Tables for tests.

use camino::{Utf8Path, Utf8PathBuf};
use provenir_table::{Table, TableBuilder};
use tempfile::TempDir;

/// A folder that vanishes with the value.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn join(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().join(name)
    }
}

/// A table with a column of every type; its values are those that `scripts/check_parquet.py` expects.
pub(crate) fn sample(rows: u32) -> Table {
    let each = || 0..rows;
    TableBuilder::new()
        .u64("sample", each().map(|row| (1 << 40) + u64::from(row)).collect())
        .u32("episode", each().map(|row| row / 10).collect())
        .i64("offset", each().map(|row| 5 - i64::from(row)).collect())
        .fixed_list_f32(
            "observation",
            3,
            each()
                .flat_map(|row| [0.0, 0.25, 0.5].map(|part| row as f32 + part))
                .collect(),
        )
        .unit("m")
        .f32("reward", each().map(|row| row as f32 * 0.5).collect())
        .f64("return", each().map(|row| f64::from(row) / 3.0).collect())
        .bool("terminated", each().map(|row| row % 10 == 9).collect())
        .utf8(
            "method",
            each().map(|row| ["bc", "rbc", "noisy-bc"][row as usize % 3]),
        )
        .optional_f64(
            "loss",
            each()
                .map(|row| (row % 4 != 0).then(|| f64::from(row) * 0.125))
                .collect(),
        )
        .optional_utf8(
            "note",
            each().map(|row| (row % 2 == 0).then(|| format!("r\u{f6}w {row}"))),
        )
        .list_u32("shape", each().map(|row| (0..row % 4).collect()).collect())
        .optional_list_f32(
            "values",
            each()
                .map(|row| (row % 3 != 0).then(|| vec![row as f32; (row % 5) as usize]))
                .collect(),
        )
        .metadata("environment", "hopper")
        .metadata("expert", "sample \u{2192} test")
        .build()
        .unwrap()
}
