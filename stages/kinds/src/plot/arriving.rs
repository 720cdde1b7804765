//! Values that parameters of `plot` name, held against what arrives: those of axes and sources are known beforehand.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::port::{ColumnType, TableSchema};
use provenir_api::schema::{join, list, nearest};
use provenir_api::{Label, Problem};

use super::{PlotParameters, SOURCE, Scale, Values};

/// Values that no row can have.
pub(super) fn problems(parameters: &PlotParameters, tables: &[&TableSchema]) -> Vec<Problem> {
    let mut problems = filtered("/where", &parameters.filter, tables);
    for (index, reference) in parameters.reference.iter().enumerate() {
        let pointer = format!("/reference/{index}");
        problems.extend(filtered(&join(&pointer, "where"), &reference.filter, tables));
        if let (Some(source), Some(known)) = (&reference.source, values(SOURCE, tables))
            && !known.contains(&Label::Text(source.clone()))
        {
            let problem = Problem::new(
                join(&pointer, "source"),
                format!("nothing that arrives is called \"{source}\""),
            );
            problems.push(problem.help(suggestion(&Label::Text(source.clone()), &known)));
        }
    }
    problems.extend(labels(parameters, tables));
    problems.extend(unscaled(parameters, tables));
    problems
}

/// Values of an axis that a log scale has no place for: those that rows have for certain.
fn unscaled(parameters: &PlotParameters, tables: &[&TableSchema]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (letter, scale, column) in [
        ('x', parameters.x_scale, &parameters.x),
        ('y', parameters.y_scale, &parameters.y),
    ] {
        if scale != Scale::Log {
            continue;
        }
        let columns = tables.iter().filter_map(|table| table.column(column));
        let values = columns.filter_map(|column| column.values.as_ref()).flatten();
        let shown = |value: &&Label| {
            let filter = parameters.filter.get(column);
            filter.is_none_or(|values| values.contains(value))
        };
        let found = values
            .filter(shown)
            .find(|value| value.as_number().is_some_and(|number| number <= 0.0));
        if let Some(value) = found {
            let message = format!("a log scale has no place for `{value}`, which column `{column}` holds");
            let problem = Problem::new(format!("/{letter}_scale"), message)
                .beside([if letter == 'x' { "/x" } else { "/y" }])
                .help(format!(
                    "leave it out with `where = {{ {column} = [ … ] }}`, or set `{letter}_scale = \"linear\"`"
                ));
            problems.push(problem);
        }
    }
    problems
}

/// Values of a filter that its column does not have.
fn filtered(pointer: &str, filter: &BTreeMap<String, Values>, tables: &[&TableSchema]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (column, wanted) in filter {
        let Some(known) = values(column, tables) else {
            continue;
        };
        for value in wanted.iter().filter(|value| !known.contains(value)) {
            let message = format!("no row that arrives has `{value}` in column `{column}`");
            let problem = Problem::new(join(pointer, column), message);
            problems.push(problem.help(suggestion(value, &known)));
        }
    }
    problems
}

/// Keys of `labels` that are neither a column, nor a source, nor a value of what tells curves and panels apart. Where such
/// values are known only when the tables are made, any key may be one.
fn labels(parameters: &PlotParameters, tables: &[&TableSchema]) -> Vec<Problem> {
    if parameters.labels.is_empty() {
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    let facets = [&parameters.columns, &parameters.rows];
    let facets = facets.into_iter().flatten().map(String::as_str);
    let mut columns = tables.iter().filter_map(|table| table.column(&parameters.x));
    let categories = columns.any(|column| column.kind == ColumnType::Utf8);
    let categories = categories.then_some(parameters.x.as_str());
    let named = parameters.series.iter().chain(facets).chain(categories);
    for column in named.chain([SOURCE]) {
        let Some(values) = values(column, tables) else {
            return Vec::new();
        };
        known.extend(values);
    }
    if tables.iter().any(|table| table.open) {
        return Vec::new();
    }
    let columns = tables.iter().flat_map(|table| &table.columns);
    let columns: BTreeSet<&str> = columns.map(|column| column.name.as_str()).collect();
    let names: BTreeSet<String> = known.iter().map(ToString::to_string).collect();
    let unmet = parameters.labels.keys();
    unmet
        .filter(|key| !columns.contains(key.as_str()) && !names.contains(*key))
        .map(|key| {
            let message = format!("`{key}` is neither a column nor a value of what is drawn");
            let mut problem = Problem::new(join("/labels", key), message);
            problem.key = true;
            let near = nearest(
                key,
                names.iter().map(String::as_str).chain(columns.iter().copied()),
            );
            problem.help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => suggestion(&Label::Text(key.clone()), &known),
            })
        })
        .collect()
}

/// The values that a column may have, where every table that has it says so.
fn values(column: &str, tables: &[&TableSchema]) -> Option<BTreeSet<Label>> {
    let mut known = None;
    for table in tables {
        match table.column(column) {
            Some(column) => {
                let values = column.values.iter().flatten().chain(&column.elsewhere);
                column.values.as_ref()?;
                known.get_or_insert_with(BTreeSet::new).extend(values.cloned());
            }
            None if table.open => return None,
            None => {}
        }
    }
    known
}

/// The text that was probably meant, or what there is: one number is not meant for another.
fn suggestion(value: &Label, known: &BTreeSet<Label>) -> String {
    const SHOWN: usize = 12;
    let texts: Vec<String> = known.iter().map(ToString::to_string).collect();
    let near = match value {
        Label::Text(name) => nearest(name, texts.iter().map(String::as_str)),
        _ => None,
    };
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if texts.len() > SHOWN => format!("there are {} values", texts.len()),
        None => format!("there is {}", list(texts.iter().map(String::as_str))),
    }
}
