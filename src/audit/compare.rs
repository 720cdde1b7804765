use camino::Utf8Path;
use provenir_api::port::ColumnType;
use provenir_table::{Table, TableError};

use super::place::Place;
use crate::store::StoreError;

/// Longest file of which bytes are compared.
const LONGEST: u64 = 1 << 30;

/// The first place at which two artifacts of one output differ, whose contents are known to.
pub fn first_difference(old: &Utf8Path, new: &Utf8Path, extension: &str) -> Result<Place, StoreError> {
    if extension == "parquet" {
        let unreadable = |error: TableError| match error {
            TableError::Io { .. } => StoreError::io("cannot read an artifact")(std::io::Error::other(error)),
            other => StoreError::malformed(old, "table", &other),
        };
        let old = provenir_table::read(old, None).map_err(unreadable)?;
        let new = provenir_table::read(new, None).map_err(unreadable)?;
        return of_tables(&old, &new).map_err(unreadable);
    }
    let read = |path: &Utf8Path| {
        let failed = || StoreError::io("cannot read an artifact");
        if fs_err::metadata(path).map_err(failed())?.len() > LONGEST {
            return Ok(None);
        }
        fs_err::read(path).map(Some).map_err(failed())
    };
    let (Some(old), Some(new)) = (read(old)?, read(new)?) else {
        return Ok(Place::Elsewhere);
    };
    let offset = old.iter().zip(&new).position(|(old, new)| old != new);
    Ok(Place::Byte {
        offset: offset.unwrap_or_else(|| old.len().min(new.len())) as u64,
    })
}

fn of_tables(old: &Table, new: &Table) -> Result<Place, TableError> {
    let columns = |table: &Table| -> Vec<String> {
        let columns = table.schema().columns;
        columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.kind))
            .collect()
    };
    let (before, after) = (columns(old), columns(new));
    if before != after {
        return Ok(Place::Columns {
            old: before,
            new: after,
        });
    }
    if old.rows() != new.rows() {
        return Ok(Place::Rows {
            old: old.rows(),
            new: new.rows(),
        });
    }
    let mut first: Option<Place> = None;
    let mut greatest: Option<f64> = Some(0.0);
    for column in &old.schema().columns {
        let (before, after) = (
            Values::read(old, &column.name, &column.kind)?,
            Values::read(new, &column.name, &column.kind)?,
        );
        let Some(found) = before.difference(&after, &column.name) else {
            continue;
        };
        greatest = match (greatest, before.largest(&after)) {
            (Some(greatest), Some(largest)) => Some(greatest.max(largest)),
            _ => None,
        };
        first.get_or_insert(found);
    }
    if let Some(Place::Value {
        row, largest, tensor, ..
    }) = &mut first
    {
        *largest = greatest;
        *tensor = tensor_of(old, *row)?;
    }
    Ok(first.unwrap_or_else(|| of_metadata(old, new)))
}

/// What the tensor in a row is called, in a table of tensors such as a policy.
fn tensor_of(table: &Table, row: usize) -> Result<Option<String>, TableError> {
    let columns = table.schema().columns;
    let has = |name: &str, kind: fn(&ColumnType) -> bool| {
        columns
            .iter()
            .any(|column| column.name == name && kind(&column.kind))
    };
    let of_tensors = has("name", |kind| *kind == ColumnType::Utf8)
        && has("shape", |kind| matches!(kind, ColumnType::List(_)))
        && has("values", |kind| matches!(kind, ColumnType::List(_)));
    if !of_tensors {
        return Ok(None);
    }
    Ok(table
        .optional_utf8("name")?
        .get(row)
        .copied()
        .flatten()
        .map(str::to_owned))
}

fn of_metadata(old: &Table, new: &Table) -> Place {
    let keys: std::collections::BTreeSet<&String> = old
        .metadata()
        .iter()
        .chain(new.metadata().iter())
        .map(|(key, _)| key)
        .collect();
    for key in keys {
        let (before, after) = (old.metadata().get(key), new.metadata().get(key));
        if before != after {
            return Place::Metadata {
                key: key.clone(),
                old: before.cloned(),
                new: after.cloned(),
            };
        }
    }
    Place::Elsewhere
}

/// A column's values in the few forms that matter for comparison.
enum Values {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
    Lists(Vec<Option<Vec<f64>>>),
}

impl Values {
    fn read(table: &Table, name: &str, kind: &ColumnType) -> Result<Self, TableError> {
        Ok(match kind {
            ColumnType::Bool => Self::Texts(
                table
                    .column_bool(name)?
                    .iter()
                    .map(|value| Some(value.to_string()))
                    .collect(),
            ),
            ColumnType::Utf8 => Self::Texts(
                table
                    .optional_utf8(name)?
                    .into_iter()
                    .map(|value| value.map(str::to_owned))
                    .collect(),
            ),
            ColumnType::FixedList(_) => {
                let (width, values) = table.column_fixed_list_f32(name)?;
                let rows = values.chunks(width.max(1));
                Self::Lists(rows.map(|row| Some(widened(row))).collect())
            }
            ColumnType::List(item) if **item == ColumnType::UInt32 => {
                let lists = table.column_list_u32(name)?;
                let widened = |list: &&[u32]| Some(list.iter().map(|value| f64::from(*value)).collect());
                Self::Lists(lists.iter().map(widened).collect())
            }
            ColumnType::List(item) if **item == ColumnType::Float64 => {
                let lists = table.optional_list_f64(name)?;
                Self::Lists(lists.into_iter().map(|list| list.map(<[f64]>::to_vec)).collect())
            }
            ColumnType::List(_) => {
                let lists = table.optional_list_f32(name)?;
                Self::Lists(lists.into_iter().map(|list| list.map(widened)).collect())
            }
            _ => Self::Numbers(table.column_numbers(name)?),
        })
    }

    /// The first row at which two columns of one type and length differ.
    fn difference(&self, other: &Self, column: &str) -> Option<Place> {
        let place = |row: usize, item: Option<usize>, old: String, new: String| Place::Value {
            column: column.to_owned(),
            row,
            item,
            old,
            new,
            tensor: None,
            largest: None,
        };
        match (self, other) {
            (Self::Numbers(old), Self::Numbers(new)) => {
                let row = old.iter().zip(new).position(|(old, new)| !same(*old, *new))?;
                Some(place(row, None, told(old[row]), told(new[row])))
            }
            (Self::Texts(old), Self::Texts(new)) => {
                let row = old.iter().zip(new).position(|(old, new)| old != new)?;
                let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "missing".to_owned());
                Some(place(row, None, told(&old[row]), told(&new[row])))
            }
            (Self::Lists(old), Self::Lists(new)) => {
                old.iter()
                    .zip(new)
                    .enumerate()
                    .find_map(|(row, pair)| match pair {
                        (Some(old), Some(new)) if old.len() == new.len() => {
                            let pairs = old.iter().zip(new);
                            let item = pairs
                                .into_iter()
                                .position(|(old, new)| !same(Some(*old), Some(*new)))?;
                            Some(place(
                                row,
                                Some(item),
                                old[item].to_string(),
                                new[item].to_string(),
                            ))
                        }
                        (Some(old), Some(new)) => Some(place(
                            row,
                            None,
                            format!("{} items", old.len()),
                            format!("{} items", new.len()),
                        )),
                        (None, None) => None,
                        (None, Some(_)) => Some(place(row, None, "missing".to_owned(), "a list".to_owned())),
                        (Some(_), None) => Some(place(row, None, "a list".to_owned(), "missing".to_owned())),
                    })
            }
            _ => None,
        }
    }

    /// The largest difference of two columns of numbers, relative to the greatest magnitude of the column, or of the list in
    /// which it is; `None` where something else differs, too.
    fn largest(&self, other: &Self) -> Option<f64> {
        match (self, other) {
            (Self::Numbers(old), Self::Numbers(new)) => {
                relative(old.iter().copied().zip(new.iter().copied()))
            }
            (Self::Lists(old), Self::Lists(new)) => {
                old.iter().zip(new).try_fold(0.0_f64, |largest, pair| match pair {
                    (Some(old), Some(new)) if old.len() == new.len() => {
                        let pairs = old.iter().zip(new).map(|(old, new)| (Some(*old), Some(*new)));
                        Some(largest.max(relative(pairs)?))
                    }
                    (None, None) => Some(largest),
                    _ => None,
                })
            }
            _ => None,
        }
    }
}

/// The largest difference of pairs of numbers relative to the greatest magnitude of all; `None` where one is missing or not
/// finite and the other is not the same.
fn relative(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Option<f64> {
    let (mut largest, mut scale) = (0.0_f64, 0.0_f64);
    for (old, new) in pairs {
        let magnitude = |value: Option<f64>| value.map_or(0.0, f64::abs);
        let greater = magnitude(old).max(magnitude(new));
        if greater.is_finite() {
            scale = scale.max(greater);
        }
        if !same(old, new) {
            let difference = (new? - old?).abs();
            if !difference.is_finite() {
                return None;
            }
            largest = largest.max(difference);
        }
    }
    // Zeros of other signs differ by nothing.
    Some(if largest == 0.0 { 0.0 } else { largest / scale })
}

fn widened(row: &[f32]) -> Vec<f64> {
    row.iter().map(|value| f64::from(*value)).collect()
}

/// Whether two values are the same, as content digests see them: all NaNs alike, zeros with their sign.
fn same(old: Option<f64>, new: Option<f64>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.to_bits() == new.to_bits() || (old.is_nan() && new.is_nan()),
        (old, new) => old.is_none() == new.is_none(),
    }
}

fn told(value: Option<f64>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use provenir_table::TableBuilder;

    use super::*;

    fn table(values: Vec<f64>, names: [&str; 2]) -> Table {
        TableBuilder::new()
            .f64("value", values)
            .utf8("name", names)
            .build()
            .unwrap()
    }

    fn told_of(old: &Table, new: &Table) -> String {
        of_tables(old, new).unwrap().to_string()
    }

    #[test]
    fn the_first_place_is_named_with_the_largest_difference() {
        let old = table(vec![1.0, 2.0], ["a", "b"]);
        assert_eq!(
            told_of(&old, &table(vec![1.0, 2.5], ["a", "b"])),
            "column value, row 1 (counted from 0): 2 became 2.5 (numbers differ by at most 2.0e-1 of the greatest magnitude in their column or list)"
        );
        assert_eq!(
            told_of(&old, &table(vec![1.0, 2.0], ["a", "c"])),
            "column name, row 1 (counted from 0): b became c"
        );
        let longer = TableBuilder::new()
            .f64("value", vec![1.0, 2.0, 3.0])
            .utf8("name", ["a", "b", "c"])
            .build()
            .unwrap();
        assert_eq!(told_of(&old, &longer), "2 rows became 3");
        let other = TableBuilder::new().f64("value", vec![1.0, 2.0]).build().unwrap();
        assert_eq!(
            told_of(&old, &other),
            "columns value f64, name text became value f64"
        );
        let noted = TableBuilder::new()
            .f64("value", vec![1.0, 2.0])
            .utf8("name", ["a", "b"])
            .metadata("environment", "hopper")
            .build()
            .unwrap();
        assert_eq!(told_of(&old, &noted), "metadata environment: none became hopper");
    }

    #[test]
    fn differences_relate_to_the_column_not_to_the_number_that_is_nearly_nothing() {
        let old = table(vec![1e-12, -4.0], ["a", "b"]);
        let place = of_tables(&old, &table(vec![-1e-12, -4.0], ["a", "b"])).unwrap();
        assert_eq!(place.largest(), Some(5e-13));
        let gone = of_tables(&old, &table(vec![f64::NAN, -4.0], ["a", "b"])).unwrap();
        assert_eq!(gone.largest(), None);
        let signed = |zero: f64| table(vec![zero, 1.0], ["a", "b"]);
        let place = of_tables(&signed(0.0), &signed(-0.0)).unwrap();
        assert_eq!(place.largest(), Some(0.0));
    }

    #[test]
    fn a_tensor_is_called_by_its_name() {
        let policy = |last: f32| {
            TableBuilder::new()
                .utf8("name", ["0.weight", "0.bias"])
                .list_u32("shape", vec![vec![1, 2], vec![2]])
                .optional_list_f32("values", vec![Some(vec![1.0, 2.0]), Some(vec![0.5, last])])
                .build()
                .unwrap()
        };
        assert_eq!(
            told_of(&policy(1.0), &policy(4.0)),
            "column values, row 1, item 1 (counted from 0; tensor 0.bias): 1 became 4 (numbers differ by at most 7.5e-1 of the greatest magnitude in their column or list)"
        );
    }

    #[test]
    fn nans_are_alike_and_zeros_are_not() {
        let nan = f64::from_bits(f64::NAN.to_bits() | 1);
        assert!(same(Some(f64::NAN), Some(nan)));
        assert!(!same(Some(0.0), Some(-0.0)));
        assert!(!same(None, Some(0.0)));
        assert!(same(None, None));
    }

    #[test]
    fn lists_are_compared_item_by_item() {
        let table = |values: Vec<f32>| {
            TableBuilder::new()
                .fixed_list_f32("action", 2, values)
                .build()
                .unwrap()
        };
        assert_eq!(
            told_of(&table(vec![1.0, 2.0, 3.0, 4.0]), &table(vec![1.0, 2.0, 3.0, 8.0])),
            "column action, row 1, item 1 (counted from 0): 4 became 8 (numbers differ by at most 5.0e-1 of the greatest magnitude in their column or list)"
        );
    }
}
