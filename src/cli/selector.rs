//! Cells as people name them: `policy[epsilon=0.1, method=rbc]`, with axes left out where they may be any.

use std::borrow::Cow;

use provenir_api::{Label, schema};

use super::arguments::quoted;
use super::error::CommandError;
use crate::plan::{CellIndex, Plan};

/// A stage, and values of some of its axes.
#[derive(Debug, PartialEq)]
pub(super) struct Selector<'a> {
    stage: &'a str,
    axes: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Selector<'a> {
    /// Reads a selector; gives what follows it, too, such as `.summary`.
    pub(super) fn parse(text: &'a str) -> Result<(Self, &'a str), CommandError> {
        let wrong = |what: &str| {
            CommandError::request(format!("`{text}` is not a cell: {what}"))
                .help("write it like `policy` or `policy[epsilon=0.1, method=rbc]`")
        };
        let end = text.find(['[', '.']).unwrap_or(text.len());
        let (stage, rest) = text.split_at(end);
        if stage.trim().is_empty() {
            return Err(wrong("it names no stage"));
        }
        let mut axes = Vec::new();
        let mut rest = rest;
        if let Some(list) = rest.strip_prefix('[') {
            let (parts, after) = split(list).map_err(wrong)?;
            rest = after;
            for part in parts.into_iter().filter(|part| !part.trim().is_empty()) {
                let Some((name, value)) = part.split_once('=') else {
                    return Err(wrong(&format!("`{}` is not an axis and its value", part.trim())));
                };
                let name = name.trim();
                if axes.iter().any(|(known, _)| *known == name) {
                    return Err(wrong(&format!("`{name}` is given twice")));
                }
                axes.push((name, unquoted(value.trim())));
            }
        }
        Ok((
            Self {
                stage: stage.trim(),
                axes,
            },
            rest,
        ))
    }

    /// Reads a selector where one of a cell, and nothing more, is `wanted`, which the error tells in a clause.
    pub(super) fn of_cell(text: &'a str, wanted: &str) -> Result<Self, CommandError> {
        if !is_path(text) {
            match Self::parse(text) {
                Ok((selector, "")) => return Ok(selector),
                Ok((_, rest)) if !is_file(text) => {
                    let output = rest.split('[').next().unwrap_or(rest);
                    return Err(
                        CommandError::request(format!("`{text}` names an output; {wanted}"))
                            .help(format!("leave `{output}` out")),
                    );
                }
                Err(error) if !is_file(text) => return Err(error),
                _ => {}
            }
        }
        if !is_file(text) {
            return Err(CommandError::request(format!(
                "there is no file `{text}`, and {wanted}"
            )));
        }
        Err(
            CommandError::request(format!("`{text}` is a file; {wanted}")).help(format!(
                "`provenir lineage {}` names the cell that made it",
                quoted(text)
            )),
        )
    }

    /// That a text which has a dot names neither a file nor a stage, where its stage is none of the plan's: it may have been
    /// meant as either.
    pub(super) fn neither(&self, text: &str, rest: &str, plan: &Plan) -> Result<(), CommandError> {
        let mut names = plan.stages.iter().map(|stage| stage.name.as_str());
        if !rest.starts_with('.') || names.any(|name| name == self.stage) || is_file(text) {
            return Ok(());
        }
        let error = CommandError::request(format!(
            "there is no file `{text}`, and no stage `{}`",
            self.stage
        ));
        let names = plan.stages.iter().map(|stage| stage.name.as_str());
        Err(error.help(suggestion(self.stage, names)))
    }

    /// Whether the cell that another names is among those that this one names, by their names alone.
    pub(super) fn includes(&self, cell: &Self) -> bool {
        self.stage == cell.stage
            && self.axes.iter().all(|(axis, value)| {
                let mut values = cell.axes.iter().filter(|(known, _)| known == axis);
                values.any(|(_, known)| {
                    known == value || number(known).is_some_and(|known| number(value) == Some(known))
                })
            })
    }

    /// The cells that it names: at least one.
    pub(super) fn cells(&self, plan: &Plan) -> Result<Vec<CellIndex>, CommandError> {
        let names = || plan.stages.iter().map(|stage| stage.name.as_str());
        let Some(stage) = plan.stages.iter().find(|stage| stage.name == self.stage) else {
            let error = CommandError::request(format!("there is no stage `{}`", self.stage));
            let of_kind = plan.stages.iter().filter(|stage| stage.kind.name() == self.stage);
            let of_kind: Vec<&str> = of_kind.map(|stage| stage.name.as_str()).collect();
            return Err(error.help(if of_kind.is_empty() {
                suggestion(self.stage, names())
            } else {
                let plural = if of_kind.len() == 1 { "" } else { "s" };
                let stages = schema::list(of_kind.iter().copied());
                format!("`{}` is the kind of the stage{plural} {stages}", self.stage)
            }));
        };
        let mut wanted = Vec::new();
        for (axis, value) in &self.axes {
            let axes = || stage.axes.iter().map(AsRef::as_ref);
            let Some(position) = axes().position(|known| known == *axis) else {
                let error = CommandError::request(format!("`{}` has no axis `{axis}`", self.stage));
                return Err(error.help(suggestion(axis, axes())));
            };
            wanted.push((position, value));
        }
        let cells: Vec<CellIndex> = stage
            .cells
            .clone()
            .filter(|cell| {
                let labels = &plan.cells[*cell].labels;
                wanted
                    .iter()
                    .all(|(position, value)| is_meant(&labels[*position], value))
            })
            .collect();
        if cells.is_empty() {
            let error = CommandError::request(format!("no cell of `{}` has these values", self.stage));
            return Err(error.help(format!("its cells: {}", listed(plan, stage.cells.clone()))));
        }
        Ok(cells)
    }

    /// The one cell that it names.
    pub(super) fn cell(&self, plan: &Plan) -> Result<CellIndex, CommandError> {
        match self.cells(plan)?[..] {
            [cell] => Ok(cell),
            ref cells => {
                let error = CommandError::request(format!("{} cells are meant; name one", cells.len()));
                Err(error.help(listed(plan, cells.iter().copied())))
            }
        }
    }
}

/// Splits what follows a `[` at the commas that are in no quotes, up to the last `]` that is in none; gives what follows that, too.
fn split(list: &str) -> Result<(Vec<&str>, &str), &'static str> {
    let (mut commas, mut end) = (Vec::new(), None);
    let (mut quoted, mut escaped, mut before) = (false, false, ' ');
    for (place, symbol) in list.char_indices() {
        match symbol {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if quoted => quoted = false,
            '"' if before == '=' => quoted = true,
            ',' if !quoted => commas.push(place),
            ']' if !quoted => end = Some(place),
            _ => {}
        }
        if !symbol.is_whitespace() {
            before = symbol;
        }
    }
    if quoted {
        return Err("a quote is not closed");
    }
    let end = end.ok_or("`]` is missing")?;
    let mut parts = Vec::new();
    let mut begin = 0;
    for comma in commas.into_iter().filter(|comma| *comma < end) {
        parts.push(&list[begin..comma]);
        begin = comma + 1;
    }
    parts.push(&list[begin..end]);
    Ok((parts, &list[end + 1..]))
}

/// A value without the quotes around it, where there are some.
fn unquoted(value: &str) -> Cow<'_, str> {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    match inner {
        Some(inner) if inner.contains('\\') => {
            let mut plain = String::new();
            let mut symbols = inner.chars();
            while let Some(symbol) = symbols.next() {
                let escaped = if symbol == '\\' { symbols.next() } else { None };
                plain.push(escaped.unwrap_or(symbol));
            }
            plain.into()
        }
        Some(inner) => inner.into(),
        None => value.into(),
    }
}

/// Whether a text can only be the path of a file: it holds a `/` before any values of axes, which may hold some, or ends as files
/// do.
pub(super) fn is_path(text: &str) -> bool {
    // No output is called so.
    const ENDINGS: [&str; 4] = [".parquet", ".zip", ".safetensors", ".toml"];
    text.split('[')
        .next()
        .is_some_and(|name| name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// Says that a path, as it was given, leads to no file.
pub(super) fn no_file(path: &str) -> CommandError {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            CommandError::request(format!("`{path}` is a folder")).help("name a file in it")
        }
        Ok(_) => CommandError::request(format!("`{path}` is no regular file")),
        Err(_) => CommandError::request(format!("there is no file `{path}`")),
    }
}

/// Whether a text is the path of a file that is there.
pub(super) fn is_file(text: &str) -> bool {
    fs_err::metadata(text).is_ok_and(|metadata| metadata.is_file())
}

/// Whether a person who writes `text` means this label: numbers by value.
fn is_meant(label: &Label, text: &str) -> bool {
    label.to_string() == text || number(text).is_some_and(|number| number == *label)
}

/// The number that a text is.
fn number(text: &str) -> Option<Label> {
    text.parse().ok().and_then(Label::number)
}

fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match schema::nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match known.collect::<Vec<_>>()[..] {
            [] => "it has none".to_owned(),
            ref known => format!("there is {}", schema::list(known.iter().copied())),
        },
    }
}

fn listed(plan: &Plan, cells: impl ExactSizeIterator<Item = CellIndex>) -> String {
    const SHOWN: usize = 12;
    let count = cells.len();
    let mut names: Vec<String> = cells.take(SHOWN).map(|cell| plan.name(cell)).collect();
    if count > SHOWN {
        names.push(format!("and {} more", count - SHOWN));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_with_what_follows_them() {
        let read = |text| {
            let (selector, rest) = Selector::parse(text).unwrap();
            let axes = selector.axes.into_iter();
            let axes: Vec<_> = axes.map(|(axis, value)| (axis, value.into_owned())).collect();
            (selector.stage, axes, rest)
        };
        let pair = |axis, value: &str| (axis, value.to_owned());
        assert_eq!(read("policy"), ("policy", vec![], ""));
        assert_eq!(read("demos.episodes"), ("demos", vec![], ".episodes"));
        assert_eq!(
            read("policy[epsilon=0.1, method=\"rbc\"].history"),
            (
                "policy",
                vec![pair("epsilon", "0.1"), pair("method", "rbc")],
                ".history"
            )
        );
        assert_eq!(
            read(r#"t[k="a, b]", l = "say \"no\"", m=x]y].sum"#),
            (
                "t",
                vec![pair("k", "a, b]"), pair("l", "say \"no\""), pair("m", "x]y")],
                ".sum"
            )
        );
        assert_eq!(read("policy[]"), ("policy", vec![], ""));
        for wrong in ["", "[a=1]", "policy[a=1", "policy[a]", ".port", "policy[a=\"x]"] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_axes_may_hold_slashes() {
        assert!(is_path("figures/plot.svg") && is_path("./plot[1].svg") && is_path("policy.parquet"));
        assert!(!is_path("demos[f=experts/hopper.parquet]") && !is_path("demos.episodes"));
    }

    #[test]
    fn numbers_are_meant_by_value() {
        assert!(is_meant(&Label::Float(0.001), "1e-3"));
        assert!(is_meant(&Label::Integer(0), "0.0"));
        assert!(is_meant(&Label::Text("0.10".into()), "0.10"));
        assert!(!is_meant(&Label::Text("0.10".into()), "0.1"));
        assert!(is_meant(&Label::Bool(true), "true"));
    }
}
