//! Policies as a table of tensors: one row per tensor and checkpoint.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `checkpoint` | u32 | number of the checkpoint, ascending |
//! | `name` | text | as in the module `tensors` |
//! | `shape` | list of u32 | as in the module `tensors` |
//! | `values` | list of f32, may be missing | values, row by row |
//! | `values64` | list of f64, may be missing | values, row by row; mean and scale only |
//!
//! Exactly one of `values` and `values64` is set. What all checkpoints share is in the table's metadata.

use std::collections::BTreeMap;

use provenir_table::{Table, TableBuilder, TableError};

use crate::header::Header;
use crate::tensors::{Tensor, Tensors, Values, short, visit};
use crate::{PolicyError, PolicySet};

impl PolicySet {
    /// As a table of tensors.
    pub fn to_table(&self) -> Result<Table, TableError> {
        let mut rows = Rows::default();
        for (number, policy) in self.checkpoints() {
            visit(policy, |name, shape, values| {
                rows.push(*number, name, shape, values);
            });
        }
        let builder = TableBuilder::new()
            .u32("checkpoint", rows.checkpoints)
            .utf8("name", rows.names)
            .list_u32("shape", rows.shapes)
            .optional_list_f32("values", rows.values)
            .optional_list_f64("values64", rows.values64);
        Header::of(self.last())
            .entries()
            .iter()
            .fold(builder, |builder, (key, value)| builder.metadata(key, value))
            .build()
    }

    /// From a table of tensors, in any order of rows; everything in it is checked, and nothing in it is ignored.
    pub fn from_table(table: &Table) -> Result<Self, PolicyError> {
        let metadata = table.metadata().iter();
        let metadata = metadata
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let header = Header::read(metadata).map_err(|flaw| TableError::Metadata {
            key: flaw.key.to_owned(),
            problem: flaw.problem,
        })?;
        let names = table.column_utf8("name")?;
        let shapes = table.column_list_u32("shape")?;
        let values = table.optional_list_f32("values")?;
        let values64 = table.optional_list_f64("values64")?;
        let mut checkpoints: BTreeMap<u32, Tensors<'_>> = BTreeMap::new();
        for (row, number) in table.column_u32("checkpoint")?.iter().enumerate() {
            let name = names[row];
            let values = match (values[row], values64[row]) {
                (Some(values), None) => Values::F32(values),
                (None, Some(values)) => Values::F64(values),
                _ => {
                    return Err(PolicyError::new(format!(
                        "the tensor `{}` of checkpoint {number} needs exactly one of `values` and `values64`",
                        short(name)
                    )));
                }
            };
            let tensor = Tensor {
                shape: shapes[row],
                values,
            };
            if !checkpoints.entry(*number).or_default().insert(name, tensor) {
                return Err(PolicyError::new(format!(
                    "checkpoint {number} has two tensors `{}`",
                    short(name)
                )));
            }
        }
        Self::assemble(checkpoints, &header)
    }

    /// The set that the tensors of each checkpoint make.
    pub(crate) fn assemble(
        checkpoints: BTreeMap<u32, Tensors<'_>>,
        header: &Header,
    ) -> Result<Self, PolicyError> {
        let checkpoints = checkpoints.into_iter().map(|(number, tensors)| {
            let policy = tensors.into_policy(header).map_err(|error| match error {
                PolicyError::Invalid(reason) => PolicyError::new(format!("checkpoint {number}: {reason}")),
                error => error,
            })?;
            Ok((number, policy))
        });
        Self::new(checkpoints.collect::<Result<_, PolicyError>>()?)
    }
}

/// The columns of a table of tensors.
#[derive(Default)]
struct Rows {
    checkpoints: Vec<u32>,
    names: Vec<String>,
    shapes: Vec<Vec<u32>>,
    values: Vec<Option<Vec<f32>>>,
    values64: Vec<Option<Vec<f64>>>,
}

impl Rows {
    fn push(&mut self, number: u32, name: String, shape: &[u32], values: Values<'_>) {
        self.checkpoints.push(number);
        self.names.push(name);
        self.shapes.push(shape.to_vec());
        let (single, double) = match values {
            Values::F32(values) => (Some(values.to_vec()), None),
            Values::F64(values) => (None, Some(values.to_vec())),
        };
        self.values.push(single);
        self.values64.push(double);
    }
}
