//! Checks values against the JSON Schemas that are derived from parameters.
//!
//! One walk finds every problem, each with the JSON pointer of the place, so that the manifest layer can show them all
//! at once with line and column. The walk knows the part of JSON Schema that `schemars` derives for plain structs,
//! enums, options, numbers, strings and arrays with references inlined; a keyword it does not know is an error of
//! ours, never a check that is silently skipped.

use serde_json::{Map, Value};

use crate::Source;
use crate::kind::is_source;
pub use crate::names::{list, look_alike, misread, nearest};

/// Something wrong at a place in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the place (`/rbc/objective`); empty for the whole value.
    pub pointer: String,
    /// Whether the key at that place, rather than its value, is wrong.
    pub key: bool,
    /// JSON pointers of further values that it comes of: each is right by itself, and they do not go together.
    pub beside: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// The nearest right thing.
    pub help: Option<String>,
}

impl Problem {
    /// A problem with the value at a place.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            key: false,
            beside: Vec::new(),
            message: message.into(),
            help: None,
        }
    }

    /// The same, which comes of the values at these places, too: whoever shows it shows where each that was given is
    /// written.
    #[must_use]
    pub fn beside<'a>(mut self, pointers: impl IntoIterator<Item = &'a str>) -> Self {
        self.beside.extend(pointers.into_iter().map(str::to_owned));
        self
    }

    /// The same, with the nearest right thing.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Every problem of `value` under `schema`.
pub fn check(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(schema, value, "", &mut problems);
    problems
}

/// The pointer to the entry `key` below `pointer`.
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Removes the value at a pointer; an empty object stays where it was.
pub fn remove(value: &mut Value, pointer: &str) {
    if let Some((parent, key)) = pointer.rsplit_once('/')
        && let Some(Value::Object(fields)) = value.pointer_mut(parent)
    {
        fields.remove(&key.replace("~1", "/").replace("~0", "~"));
    }
}

/// Removes every field that equals its schema's default.
///
/// Two values that differ keep different remainders: a field is either absent (its default) or present (anything
/// else), and a field that is itself an object with a default is removed as a whole or kept with its own differences. It is
/// removed, too, where fields that do not matter are missing from it and the others equal their defaults.
pub fn remove_defaults(schema: &Value, value: &mut Value) {
    if let (Some(schema), Value::Object(entries)) = (entries_of(schema), &mut *value) {
        // An entry says something by being there, whatever is left of it.
        entries
            .values_mut()
            .for_each(|entry| remove_defaults(schema, entry));
        return;
    }
    let (Some(properties), Value::Object(fields)) = (properties_for(schema, value), &mut *value) else {
        return;
    };
    fields.retain(|key, field| {
        let Some(schema) = properties.get(key) else {
            return false;
        };
        if schema.get("default").is_some_and(|default| same(default, field)) {
            return false;
        }
        remove_defaults(schema, field);
        !(is_empty(field)
            && schema
                .get("default")
                .is_some_and(|default| defaults_to_nothing(schema, default)))
    });
}

/// Whether every field of an object equals its own default.
fn defaults_to_nothing(schema: &Value, object: &Value) -> bool {
    let mut rest = object.clone();
    remove_defaults(schema, &mut rest);
    is_empty(&rest)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The source files among the parameters.
pub fn sources(schema: &Value, value: &Value) -> Vec<Source> {
    let mut found = Vec::new();
    collect_sources(schema, value, "", &mut found);
    found
}

fn collect_sources(schema: &Value, value: &Value, pointer: &str, found: &mut Vec<Source>) {
    match value {
        Value::String(path) if alternatives(schema).any(is_source) => {
            found.push(Source {
                pointer: pointer.to_owned(),
                path: path.into(),
            });
        }
        Value::Object(fields) => {
            if let Some(properties) = properties_for(schema, value) {
                for (key, field) in fields {
                    if let Some(schema) = properties.get(key) {
                        collect_sources(schema, field, &join(pointer, key), found);
                    }
                }
            } else if let Some(schema) = entries_of(schema) {
                for (key, field) in fields {
                    collect_sources(schema, field, &join(pointer, key), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = alternatives(schema).find_map(|schema| schema.get("items")) {
                for (index, item) in items.iter().enumerate() {
                    collect_sources(schema, item, &join(pointer, &index.to_string()), found);
                }
            }
        }
        _ => {}
    }
}

/// A schema and, where it is a choice (`anyOf`, `oneOf`), its alternatives.
fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    let choices = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten();
    std::iter::once(schema).chain(choices)
}

/// The schema of the entries of a map: of an object whose keys are free.
fn entries_of(schema: &Value) -> Option<&Value> {
    let is_map = |schema: &&Value| schema.get("properties").is_none();
    alternatives(schema)
        .filter(is_map)
        .filter_map(|schema| schema.get("additionalProperties"))
        .find(|entries| entries.is_object())
}

/// The properties of the alternative that describes this object.
fn properties_for<'a>(schema: &'a Value, value: &Value) -> Option<&'a Map<String, Value>> {
    if !value.is_object() {
        return None;
    }
    let mut candidates = alternatives(schema)
        .filter(|schema| schema.get("properties").is_some())
        .peekable();
    let first = candidates.next()?;
    let chosen = if candidates.peek().is_none() || check(first, value).is_empty() {
        first
    } else {
        candidates
            .find(|schema| check(schema, value).is_empty())
            .unwrap_or(first)
    };
    chosen.get("properties")?.as_object()
}

/// Equality that takes numbers by value.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64().is_some_and(|left| Some(left) == right.as_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn walk(schema: &Value, value: &Value, pointer: &str, problems: &mut Vec<Problem>) {
    let Some(schema) = schema.as_object() else {
        // `true` accepts anything; `schemars` never derives `false` for a parameter.
        return;
    };
    let problem = |message: String| Problem::new(pointer, message);
    if let Some(constant) = schema.get("const") {
        if !same(constant, value) {
            problems.push(problem(format!("{} is not {}", shown(value), shown(constant))));
        }
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        if !choices.iter().any(|choice| same(choice, value)) {
            problems.push(not_a_choice(value, &choices.iter().collect::<Vec<_>>(), pointer));
        }
        return;
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            check_choice(choices, value, pointer, problems);
            return;
        }
    }
    if let Some(expected) = schema.get("type") {
        let types: Vec<&str> = match expected {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            Value::String(expected) => vec![expected],
            _ => Vec::new(),
        };
        if !types.iter().any(|expected| is_of_type(value, expected)) {
            let wanted: Vec<&str> = types
                .iter()
                .filter(|name| **name != "null")
                .map(|name| described(name))
                .collect();
            let mut problem = problem(format!(
                "expected {}, found {}",
                wanted.join(" or "),
                shown(value)
            ));
            problem.help = types.iter().find_map(|wanted| rewritten(value, wanted));
            problems.push(problem);
            return;
        }
    }
    match value {
        Value::Number(_) => check_range(schema, value, pointer, problems),
        Value::String(text) => {
            if let Some(least) = schema.get("minLength").and_then(Value::as_u64)
                && (text.chars().count() as u64) < least
            {
                problems.push(problem("must not be empty".to_owned()));
            }
        }
        Value::Array(items) => check_array(schema, items, pointer, problems),
        Value::Object(fields) => check_object(schema, fields, pointer, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

fn check_array(schema: &Map<String, Value>, items: &[Value], pointer: &str, problems: &mut Vec<Problem>) {
    let count = items.len() as u64;
    if let Some(least) = schema
        .get("minItems")
        .and_then(Value::as_u64)
        .filter(|least| count < *least)
    {
        problems.push(Problem::new(
            pointer,
            format!("needs at least {least} item{}, has {count}", plural(least)),
        ));
    }
    if let Some(most) = schema
        .get("maxItems")
        .and_then(Value::as_u64)
        .filter(|most| count > *most)
    {
        problems.push(Problem::new(
            pointer,
            format!("takes at most {most} item{}, has {count}", plural(most)),
        ));
    }
    if let Some(schema) = schema.get("items") {
        for (index, item) in items.iter().enumerate() {
            walk(schema, item, &join(pointer, &index.to_string()), problems);
        }
    }
}

fn check_object(
    schema: &Map<String, Value>,
    fields: &Map<String, Value>,
    pointer: &str,
    problems: &mut Vec<Problem>,
) {
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    // Parameters that a misspelt key was probably meant for: they are not missing.
    let mut meant = Vec::new();
    for (key, field) in fields {
        match properties.get(key) {
            Some(schema) => walk(schema, field, &join(pointer, key), problems),
            None if closed => {
                let mut problem = Problem::new(join(pointer, key), format!("unknown parameter `{key}`"));
                problem.key = true;
                let known = || properties.keys().map(String::as_str);
                problem.help = Some(match nearest(key, known()) {
                    Some(near) => {
                        meant.push(near);
                        did_you_mean(key, &format!("`{near}`"))
                    }
                    None if properties.is_empty() => "no parameters are taken here".to_owned(),
                    None => {
                        below(key, properties).unwrap_or_else(|| format!("known here: {}", list(known())))
                    }
                });
                problems.push(problem);
            }
            None => {
                if let Some(schema) = schema.get("additionalProperties") {
                    walk(schema, field, &join(pointer, key), problems);
                }
            }
        }
    }
    for key in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !fields.contains_key(key) && !meant.contains(&key) {
            let mut problem = Problem::new(pointer, format!("parameter `{key}` is missing"));
            problem.help = properties
                .get(key)
                .and_then(|schema| schema.get("description"))
                .and_then(Value::as_str)
                .map(|text| format!("`{key}`: {}", first_paragraph(text)));
            problems.push(problem);
        }
    }
}

/// The first paragraph of a description, as one line.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Where a parameter belongs that stands beside the tables that take it.
fn below(key: &str, properties: &Map<String, Value>) -> Option<String> {
    let takes = |schema: &Value| {
        let mut alternatives = alternatives(schema).filter_map(|schema| schema.get("properties"));
        alternatives.any(|properties| properties.get(key).is_some())
    };
    let tables: Vec<&str> = properties
        .iter()
        .filter(|(_, schema)| takes(schema))
        .map(|(name, _)| name.as_str())
        .collect();
    match tables.as_slice() {
        [] => None,
        [table] => Some(format!("it belongs to `{table}`: `{table} = {{ {key} = … }}`")),
        tables => Some(format!(
            "it belongs into a table: there is one in {}",
            list(tables.iter().copied())
        )),
    }
}

fn check_choice(choices: &[Value], value: &Value, pointer: &str, problems: &mut Vec<Problem>) {
    let mut attempts: Vec<(&Value, Vec<Problem>)> = Vec::new();
    for choice in choices {
        let mut found = Vec::new();
        walk(choice, value, pointer, &mut found);
        if found.is_empty() {
            return;
        }
        attempts.push((choice, found));
    }
    let constants: Vec<&Value> = choices
        .iter()
        .flat_map(|choice| {
            let listed = choice.get("enum").and_then(Value::as_array).into_iter().flatten();
            choice.get("const").into_iter().chain(listed)
        })
        .collect();
    if value.is_string() && !constants.is_empty() {
        problems.push(not_a_choice(value, &constants, pointer));
        return;
    }
    // The alternative of the right type says most about what is wrong; failing that, the one with fewest complaints.
    let best = attempts.into_iter().min_by_key(|(choice, found)| {
        let fits = choice
            .get("type")
            .and_then(Value::as_str)
            .is_none_or(|name| is_of_type(value, name));
        let nothing = choice.get("type").and_then(Value::as_str) == Some("null");
        (nothing, !fits, found.len())
    });
    problems.extend(best.into_iter().flat_map(|(_, found)| found));
}

fn check_range(schema: &Map<String, Value>, value: &Value, pointer: &str, problems: &mut Vec<Problem>) {
    let Some(number) = value.as_f64() else { return };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let mut broken = Vec::new();
    if let Some(least) = bound("minimum").filter(|least| number < *least) {
        broken.push(format!("at least {least}"));
    }
    if let Some(limit) = bound("exclusiveMinimum").filter(|limit| number <= *limit) {
        broken.push(format!("above {limit}"));
    }
    if let Some(most) = bound("maximum").filter(|most| number > *most) {
        broken.push(format!("at most {most}"));
    }
    if let Some(limit) = bound("exclusiveMaximum").filter(|limit| number >= *limit) {
        broken.push(format!("below {limit}"));
    }
    if !broken.is_empty() {
        problems.push(Problem::new(
            pointer,
            format!("must be {}, is {}", broken.join(" and "), shown(value)),
        ));
    }
}

fn not_a_choice(value: &Value, choices: &[&Value], pointer: &str) -> Problem {
    let texts = || choices.iter().filter_map(|choice| choice.as_str());
    let near = value.as_str().and_then(|value| nearest(value, texts()));
    let known = choices
        .iter()
        .map(|choice| shown(choice))
        .collect::<Vec<_>>()
        .join(", ");
    let problem = Problem::new(pointer, format!("{} is not one of {known}", shown(value)));
    match near {
        Some(near) => problem.help(did_you_mean(
            value.as_str().unwrap_or_default(),
            &format!("\"{near}\""),
        )),
        None => problem,
    }
}

/// The question, and what is odd about the name that was written.
fn did_you_mean(name: &str, near: &str) -> String {
    match misread(name) {
        Some(odd) => format!("did you mean {near}? {odd}"),
        None => format!("did you mean {near}?"),
    }
}

/// How a value of another type would be written as one of the wanted type, where it says the same.
fn rewritten(value: &Value, wanted: &str) -> Option<String> {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < WHOLE).then(|| format!("{number}"));
    match (wanted, value) {
        ("integer", Value::Number(number)) => Some(format!("write {}", whole(number.as_f64()?)?)),
        ("integer" | "number", Value::String(text)) => {
            let percent = text.trim().strip_suffix('%');
            let number: f64 = percent.unwrap_or(text).trim().parse().ok()?;
            let number = if percent.is_some() { number / 100.0 } else { number };
            let text = if wanted == "integer" {
                whole(number)?
            } else {
                number.is_finite().then(|| format!("{number}"))?
            };
            let quotes = if percent.is_some() { "" } else { ", without quotes" };
            Some(format!("write {text}{quotes}"))
        }
        ("boolean", Value::String(text)) => {
            let truth = match text.to_lowercase().as_str() {
                "true" | "yes" | "on" => true,
                "false" | "no" | "off" => false,
                _ => return None,
            };
            Some(format!("write {truth}, without quotes"))
        }
        ("boolean", Value::Number(number)) => match number.as_u64() {
            Some(0) => Some("write false".to_owned()),
            Some(1) => Some("write true".to_owned()),
            _ => None,
        },
        ("string", Value::Number(_) | Value::Bool(_)) => Some(format!("write \"{value}\", in quotes")),
        ("array", Value::String(text)) if text.contains(',') || text.starts_with('[') => {
            let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
            let parts: Vec<String> = inner
                .split(',')
                .map(|part| part.trim().trim_matches(['"', '\'']))
                .filter(|part| !part.is_empty())
                .map(|part| match part.parse::<f64>() {
                    Ok(number) if number.is_finite() => part.to_owned(),
                    _ => shown(&Value::from(part)),
                })
                .collect();
            Some(format!("write [{}]", parts.join(", ")))
        }
        ("array", Value::Number(_) | Value::Bool(_) | Value::String(_)) => {
            Some(format!("write [{}]", shown(value)))
        }
        _ => None,
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn described(name: &str) -> &str {
    match name {
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "an array",
        "object" => "a table",
        other => other,
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A value as a message shows it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 60 => {
            format!("\"{}…\"", text.chars().take(60).collect::<String>())
        }
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_of_which_nothing_is_left_is_left_out_where_absence_means_the_same() {
        let table = |default: Value| {
            json!({"properties": {"t": {
                "default": default, "properties": {"a": {"default": 1}, "b": {"default": 2}}, "additionalProperties": false,
            }}})
        };
        let left = |schema: &Value, value: Value| {
            let mut value = value;
            remove_defaults(schema, &mut value);
            value
        };
        let usual = table(json!({"a": 1, "b": 2}));
        // `b` does not matter and was removed.
        assert_eq!(left(&usual, json!({"t": {"a": 1}})), json!({}));
        assert_eq!(left(&usual, json!({"t": {"a": 3}})), json!({"t": {"a": 3}}));
        // Absence means another `a`.
        let odd = table(json!({"a": 5, "b": 2}));
        assert_eq!(left(&odd, json!({"t": {"a": 1, "b": 2}})), json!({"t": {}}));
        assert_eq!(left(&odd, json!({"t": {"a": 5, "b": 2}})), json!({}));
        // A map without entries is not its default.
        let map = json!({"properties": {"t": {"default": {"x": 1}, "additionalProperties": true}}});
        assert_eq!(left(&map, json!({"t": {}})), json!({"t": {}}));
    }

    #[test]
    fn entries_of_a_map_keep_their_names_and_lose_their_defaults() {
        let entry = json!({"properties": {"a": {"default": 1}, "b": {}}, "additionalProperties": false});
        let schema = json!({"properties": {"m": {"default": {}, "additionalProperties": entry}}});
        let left = |value: Value| {
            let mut value = value;
            remove_defaults(&schema, &mut value);
            value
        };
        assert_eq!(left(json!({"m": {}})), json!({}));
        assert_eq!(
            left(json!({"m": {"x": {"a": 1}, "y": {"a": 2, "b": 3}}})),
            json!({"m": {"x": {}, "y": {"a": 2, "b": 3}}})
        );
    }

    #[test]
    fn source_files_in_a_map_are_found_by_their_names() {
        let file = json!({"type": "string", "format": "source-file"});
        let schema = json!({"properties": {"files": {"type": "object", "additionalProperties": file}}});
        let found = sources(&schema, &json!({"files": {"a/b.py": "x.py", "c": "y"}}));
        let pointers: Vec<&str> = found.iter().map(|source| source.pointer.as_str()).collect();
        assert_eq!(pointers, ["/files/a~1b.py", "/files/c"]);
    }

    #[test]
    fn a_misspelt_parameter_is_not_missing_too() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {"outlier": {"type": "string"}, "fraction": {"type": "number"}},
            "required": ["outlier", "fraction"],
        });
        let said = |value: Value| -> Vec<String> {
            let problems = check(&schema, &value);
            problems.into_iter().map(|problem| problem.message).collect()
        };
        assert_eq!(
            said(json!({"outleir": "a", "fraction": 1})),
            ["unknown parameter `outleir`"]
        );
        assert_eq!(
            said(json!({"outleir": "a"})),
            ["unknown parameter `outleir`", "parameter `fraction` is missing"]
        );
        assert_eq!(
            said(json!({"other": "a", "fraction": 1})),
            ["unknown parameter `other`", "parameter `outlier` is missing"]
        );
    }

    #[test]
    fn a_parameter_beside_the_table_that_takes_it_is_shown_where_it_belongs() {
        let table = |name: &str| json!({"properties": {name: {}}, "additionalProperties": false});
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {"a": table("weight"), "b": table("rounds"), "c": {"anyOf": [table("rounds"), {"type": "null"}]}},
        });
        let help = |value: Value| check(&schema, &value).remove(0).help.unwrap();
        assert_eq!(
            help(json!({"weight": 1})),
            "it belongs to `a`: `a = { weight = … }`"
        );
        assert_eq!(
            help(json!({"rounds": 1})),
            "it belongs into a table: there is one in `b`, `c`"
        );
        assert_eq!(help(json!({"other": 1})), "known here: `a`, `b`, `c`");
    }

    #[test]
    fn a_value_of_another_type_is_shown_as_it_should_be_written() {
        for (wanted, value, help) in [
            (json!("integer"), json!(24000.0), Some("write 24000")),
            (json!(["integer", "null"]), json!(-3.0), Some("write -3")),
            (json!("integer"), json!(2.5), None),
            (json!("integer"), json!(1e300), None),
            (json!("integer"), json!("24"), Some("write 24, without quotes")),
            (json!("integer"), json!("2.5"), None),
            (json!("number"), json!("2.5"), Some("write 2.5, without quotes")),
            (json!("number"), json!("5%"), Some("write 0.05")),
            (json!("number"), json!("inf"), None),
            (json!("number"), json!("many"), None),
            (
                json!("boolean"),
                json!("True"),
                Some("write true, without quotes"),
            ),
            (json!("boolean"), json!(0), Some("write false")),
            (json!("boolean"), json!("yes"), Some("write true, without quotes")),
            (json!("boolean"), json!("maybe"), None),
            (json!("array"), json!("64, 32"), Some("write [64, 32]")),
            (json!("array"), json!("[a,'b']"), Some("write [\"a\", \"b\"]")),
            (json!("string"), json!(24), Some("write \"24\", in quotes")),
            (json!("array"), json!(64), Some("write [64]")),
            (json!("array"), json!("a"), Some("write [\"a\"]")),
            (json!("array"), json!({}), None),
        ] {
            let problems = check(&json!({ "type": wanted }), &value);
            assert_eq!(problems.len(), 1, "{value}");
            assert_eq!(problems[0].help.as_deref(), help, "{value}");
        }
    }
}
