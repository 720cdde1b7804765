use provenir_api::port::{Column, ColumnType};
use provenir_api::schema::nearest;

/// Names of types elsewhere, and what they are here.
const ELSEWHERE: [(&str, &str); 24] = [
    ("boolean", "bool"),
    ("uint8", "u32"),
    ("uint16", "u32"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("u8", "u32"),
    ("u16", "u32"),
    ("usize", "u64"),
    ("int", "i64"),
    ("int8", "i64"),
    ("int16", "i64"),
    ("int32", "i64"),
    ("int64", "i64"),
    ("integer", "i64"),
    ("i32", "i64"),
    ("float16", "f32"),
    ("float32", "f32"),
    ("single", "f32"),
    ("float", "f64"),
    ("float64", "f64"),
    ("double", "f64"),
    ("str", "text"),
    ("string", "text"),
    ("utf8", "text"),
];

/// A column without a name, of a written type: what [`ColumnType`] shows, and a `?` where values may be missing. `Err` says what
/// to write instead.
pub(super) fn parse(written: &str) -> Result<Column, String> {
    let (name, nullable) = match written.strip_suffix('?') {
        Some(name) => (name, true),
        None => (written, false),
    };
    let kind: ColumnType = name.parse().map_err(|_| advice(name))?;
    let mut column = Column::new("", kind);
    column.nullable = nullable;
    Ok(column)
}

fn advice(name: &str) -> String {
    let scalars: Vec<String> = ColumnType::SCALARS.iter().map(ToString::to_string).collect();
    let of_scalar = |item: &str| {
        let lower = item.trim().to_lowercase();
        // Of a list, people write several.
        let singular = lower.strip_suffix('s').unwrap_or(&lower);
        let other = ELSEWHERE
            .iter()
            .find(|(other, _)| *other == lower || *other == singular);
        other
            .map(|(_, here)| *here)
            .or_else(|| nearest(item, scalars.iter().map(String::as_str)))
            .map(str::to_owned)
    };
    let lower = name.trim().to_lowercase();
    // `list<float>`, `list[f32]`, `[f32]`, `list of float`, `fixed list of f32`.
    let inner = lower.trim_end_matches([']', '>', ')']);
    let (head, item) = match inner.rsplit_once(['<', '[', '(']) {
        Some((head, item)) => (head.trim(), item),
        None => match inner.rsplit_once(' ') {
            Some((head, item)) if head.contains("list") => (head, item),
            _ => ("", ""),
        },
    };
    let is_list = !item.is_empty() && (head.is_empty() || head.contains("list") || head.contains("array"));
    let meant = if is_list {
        let kind = if head.contains("fixed") {
            "fixed-size list"
        } else {
            "list"
        };
        of_scalar(item).map(|item| format!("{kind} of {item}"))
    } else {
        of_scalar(name)
    };
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "types are {}, and `list of …` and `fixed-size list of …` these; `?` after one says that values may be missing",
            scalars
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_others_are_answered_with_what_was_meant() {
        assert_eq!(parse("f64").unwrap(), Column::new("", ColumnType::Float64));
        let list = ColumnType::List(Box::new(ColumnType::UInt32));
        assert_eq!(parse("list of u32?").unwrap(), Column::new("", list).nullable());
        for (written, meant) in [
            ("float64", "f64"),
            ("String", "text"),
            ("int32?", "i64"),
            ("list<double>", "list of f64"),
            ("[f32]", "list of f32"),
            ("fixed_size_list[float32]", "fixed-size list of f32"),
            ("list of floats", "list of f64"),
            ("f46", "f64"),
        ] {
            let advice = parse(written).unwrap_err();
            assert_eq!(advice, format!("did you mean `{meant}`?"), "{written}");
        }
        assert!(
            parse("timestamp")
                .unwrap_err()
                .starts_with("types are `bool`, `u32`")
        );
    }
}
