//! TOML values that know where they were written.

use std::cell::Cell;

use indexmap::IndexMap;
use provenir_api::Label;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::Report;
use super::source::Span;
use super::syntax::{Form, TOO_DEEP, TOO_DEEP_HELP, syntax_errors};

/// How deep tables and arrays may nest; [`TOO_DEEP`] names it.
pub(super) const DEPTH_LIMIT: usize = 32;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) data: Data,
    pub(crate) span: Span,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// Something that was reported when it was read.
    Invalid,
    Bool(bool),
    Integer(i64),
    /// Finite.
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Entries in the order in which they were written.
pub(crate) type Table = IndexMap<String, Entry>;

/// A value in a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where the key is written.
    pub(crate) key: Span,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn table(table: Table, span: Span) -> Self {
        Self {
            data: Data::Table(table),
            span,
        }
    }

    pub(crate) fn text(text: impl Into<String>, span: Span) -> Self {
        Self {
            data: Data::Text(text.into()),
            span,
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What a message calls a value of this type.
    pub(crate) fn described(&self) -> &'static str {
        match &self.data {
            Data::Invalid => "nothing",
            Data::Bool(_) => "a truth value",
            Data::Integer(_) => "a whole number",
            Data::Float(_) => "a number",
            Data::Text(_) => "a text",
            Data::Array(_) => "an array",
            Data::Table(_) => "a table",
        }
    }

    /// Whether it is, or holds, something that was reported when it was read.
    pub(crate) fn is_spoilt(&self) -> bool {
        match &self.data {
            Data::Invalid => true,
            Data::Array(items) => items.iter().any(Self::is_spoilt),
            Data::Table(table) => table.values().any(|entry| entry.node.is_spoilt()),
            _ => false,
        }
    }

    /// The label of a scalar.
    pub(crate) fn label(&self) -> Option<Label> {
        match &self.data {
            Data::Bool(value) => Some(Label::Bool(*value)),
            Data::Integer(value) => Some(Label::Integer(*value)),
            Data::Float(value) => Label::number(*value),
            Data::Text(value) => Some(Label::Text(value.clone())),
            Data::Invalid | Data::Array(_) | Data::Table(_) => None,
        }
    }

    /// The same value without places. What was reported when it was read becomes null.
    pub(crate) fn to_value(&self) -> Value {
        match &self.data {
            Data::Invalid => Value::Null,
            Data::Bool(value) => Value::from(*value),
            Data::Integer(value) => Value::from(*value),
            Data::Float(value) => Value::from(*value),
            Data::Text(value) => Value::from(value.as_str()),
            Data::Array(items) => items.iter().map(Self::to_value).collect(),
            Data::Table(table) => table
                .iter()
                .map(|(key, entry)| (key.clone(), entry.node.to_value()))
                .collect(),
        }
    }

    /// Lays another value over this one: tables are merged entry by entry, anything else is replaced.
    pub(crate) fn merge(&mut self, over: Self) {
        match (&mut self.data, over.data) {
            (Data::Table(table), Data::Table(over)) => {
                for (key, entry) in over {
                    merge_entry(table, key, entry);
                }
            }
            (data, over_data) => {
                *data = over_data;
                self.span = over.span;
            }
        }
    }

    /// Gives every value the one that a layer has in its place, if it has one.
    pub(crate) fn replace(&mut self, layer: &Self) {
        match (&mut self.data, &layer.data) {
            (Data::Table(table), Data::Table(over)) => {
                for (key, entry) in table.iter_mut() {
                    if let Some(over) = over.get(key) {
                        entry.node.replace(&over.node);
                    }
                }
            }
            _ => *self = layer.clone(),
        }
    }
}

/// Lays an entry over a table's entry of the same key, if it has one.
pub(crate) fn merge_entry(table: &mut Table, key: String, entry: Entry) {
    match table.get_mut(&key) {
        Some(present) => {
            present.key = entry.key;
            present.node.merge(entry.node);
        }
        None => {
            table.insert(key, entry);
        }
    }
}

/// Reads a TOML document that was added to the report's sources. Syntax errors are reported; what could be read in
/// spite of them is of no use to anyone, so that there is no value then.
pub(crate) fn parse_document(source: u32, text: &str, report: &mut Report) -> Option<Table> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        report_syntax((source, 0), text, Form::Document, &errors, report);
        return None;
    }
    let reader = Reader::new(source, 0);
    let table = reader.table(table.into_inner(), 0, report);
    // Of a text that goes too deep nothing else is worth saying.
    (!reader.too_deep.get()).then_some(table)
}

/// Reads a TOML value that begins `shift` bytes into a source.
pub(crate) fn parse_value(source: u32, shift: usize, text: &str, report: &mut Report) -> Option<Node> {
    let (value, errors) = DeValue::parse_recoverable(text);
    if !errors.is_empty() {
        report_syntax((source, shift), text, Form::Value, &errors, report);
        return None;
    }
    Some(Reader::new(source, shift).node(value, 0, report))
}

fn report_syntax(
    (source, shift): (u32, usize),
    text: &str,
    form: Form,
    errors: &[toml::de::Error],
    report: &mut Report,
) {
    let reader = Reader::new(source, shift);
    for error in syntax_errors(text, form, errors) {
        let diagnostic = report.error(reader.span(error.span), error.message);
        if let Some(help) = error.help {
            diagnostic.help(help);
        }
        if let Some((place, what)) = error.other {
            diagnostic.label(reader.span(place), what);
        }
    }
}

/// Turns the parser's values into ours.
struct Reader {
    source: u32,
    shift: usize,
    /// Whether something nests too deeply, which was reported.
    too_deep: Cell<bool>,
}

impl Reader {
    fn new(source: u32, shift: usize) -> Self {
        Self {
            source,
            shift,
            too_deep: Cell::new(false),
        }
    }

    fn span(&self, range: std::ops::Range<usize>) -> Span {
        let offset = |offset: usize| u32::try_from(offset + self.shift).unwrap_or(u32::MAX);
        Span {
            source: self.source,
            start: offset(range.start),
            end: offset(range.end),
        }
    }

    fn table(&self, table: DeTable<'_>, depth: usize, report: &mut Report) -> Table {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
            .into_iter()
            .map(|(key, value)| {
                let span = self.span(key.span());
                let entry = Entry {
                    key: span,
                    node: self.node(value, depth + 1, report),
                };
                (key.into_inner().into_owned(), entry)
            })
            .collect()
    }

    fn node(&self, value: Spanned<DeValue<'_>>, depth: usize, report: &mut Report) -> Node {
        let span = self.span(value.span());
        let mut invalid = |message: String| {
            report.error(span, message);
            Data::Invalid
        };
        let data = match value.into_inner() {
            DeValue::Array(_) | DeValue::Table(_) if depth > DEPTH_LIMIT => {
                if !self.too_deep.replace(true) {
                    report.error(span, TOO_DEEP).help(TOO_DEEP_HELP);
                }
                Data::Invalid
            }
            DeValue::String(text) => Data::Text(text.into_owned()),
            DeValue::Boolean(value) => Data::Bool(value),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) => Data::Integer(value),
                Err(_) => invalid(format!("whole numbers are between {} and {}", i64::MIN, i64::MAX)),
            },
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(value) if value.is_finite() => Data::Float(value),
                _ => invalid(format!(
                    "numbers must be finite, this is {}",
                    clip(float.as_str())
                )),
            },
            DeValue::Datetime(_) => {
                invalid("dates and times have no meaning here; in quotes it would be a text".to_owned())
            }
            DeValue::Array(items) => Data::Array(
                items
                    .into_iter()
                    .map(|item| self.node(item, depth + 1, report))
                    .collect(),
            ),
            DeValue::Table(table) => Data::Table(self.table(table, depth, report)),
        };
        if matches!(data, Data::Invalid) {
            report.spoil(span);
        }
        Node { data, span }
    }
}

/// A text as TOML writes it, short enough for a message.
pub(crate) fn quoted(text: &str) -> String {
    let text = clip(text);
    match (text.contains(['"', '\\']), text.contains('\'')) {
        (false, _) => format!("\"{text}\""),
        (true, false) => format!("'{text}'"),
        (true, true) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A text short enough to be shown in a message.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() > SHOWN {
        format!("{}…", text.chars().take(SHOWN).collect::<String>())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{Origin, Sources};
    use super::*;

    fn read(text: &str) -> (Option<Table>, Report) {
        let mut sources = Sources::default();
        let id = sources.add(Origin::File("m.toml".into()), text.to_owned());
        let mut report = Report::new(sources);
        let table = parse_document(id, text, &mut report);
        (table, report)
    }

    #[test]
    fn entries_keep_their_order_and_their_places() {
        let text = "b = 1\na = [2, \"x\"]\n[t]\nc.d = 0x1f\n";
        let (table, report) = read(text);
        let table = table.expect("it is well-formed");
        assert_eq!(table.keys().collect::<Vec<_>>(), ["b", "a", "t"]);
        let Data::Array(items) = &table["a"].node.data else {
            panic!("`a` is an array")
        };
        assert_eq!(report.sources.slice(items[1].span), "\"x\"");
        let c = &table["t"].node.as_table().expect("a table")["c"];
        assert_eq!(report.sources.slice(c.key), "c");
        let d = &c.node.as_table().expect("a table")["d"];
        assert!(matches!(d.node.data, Data::Integer(31)));
        assert_eq!(report.sources.slice(d.node.span), "0x1f");
    }

    #[test]
    fn tables_merge_and_everything_else_is_replaced() {
        let read = |text| Node::table(read(text).0.expect("well-formed"), Sources::start(0));
        let mut base = read("a = {x = 1, y = [1, 2]}\nb = 1");
        base.merge(read("a = {y = [3], z = 4}\nb = {c = 1}"));
        assert_eq!(
            base.to_value(),
            serde_json::json!({"a": {"x": 1, "y": [3], "z": 4}, "b": {"c": 1}})
        );
    }

    #[test]
    fn deep_nesting_and_numbers_that_are_none_are_reported_not_followed() {
        for text in [
            format!("a = {}1{}", "[".repeat(40), "]".repeat(40)),
            format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
            format!("{} = 1", vec!["a"; 40].join(".")),
            format!("{} = 1", vec!["a"; 100_000].join(".")),
            "a = nan".to_owned(),
            "a = -inf".to_owned(),
            "a = 1e999".to_owned(),
            "a = 99999999999999999999".to_owned(),
            "a = 2020-01-01".to_owned(),
        ] {
            let (_, report) = read(&text);
            assert!(report.has_errors(), "{}", clip(&text));
        }
    }
}
