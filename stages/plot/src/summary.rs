//! From rows to what is drawn: which rows make a point, and what they say together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use provenir_api::Label;
use provenir_api::port::TableSchema;
use provenir_api::schema::{list, nearest};
use provenir_execution::{Context, Failure, Input};
use provenir_kinds::plot::{Plot, PlotParameters};
use provenir_random::Stream;

use crate::columns::{self, Factor};
use crate::figure::Figure;
use crate::filter::Filter;
use crate::references;
use crate::statistics::Sorted;

/// How many rows and how many columns of panels a figure may have.
const MOST_FACETS: usize = 16;

/// How many categories an axis may have.
const MOST_CATEGORIES: usize = 64;

/// What is drawn. Facets and series are those that have a point, sorted; everything else refers to them by place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    /// One `None` where there are no rows of panels.
    pub(crate) rows: Vec<Option<Label>>,
    /// One `None` where there are no columns of panels.
    pub(crate) columns: Vec<Option<Label>>,
    /// The values of the series columns; one empty list where there are none.
    pub(crate) series: Vec<Vec<Label>>,
    /// What the horizontal axis tells apart, where it has texts: the x of a point is its place here.
    pub(crate) categories: Vec<Label>,
    /// Sorted by row, column, series and x.
    pub(crate) points: Vec<Point>,
    /// Names of reference lines, those of the parameters first.
    pub(crate) references: Vec<String>,
    /// Sorted by reference, row and column.
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) series: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) band: Option<[f64; 2]>,
    /// Rows behind it.
    pub(crate) count: usize,
}

impl Summary {
    /// The category of a point, where there are such.
    pub(crate) fn category(&self, point: &Point) -> Option<&Label> {
        self.categories.get(point.x as usize)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) reference: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) y: f64,
    /// Rows behind it; none for a constant.
    pub(crate) count: usize,
}

/// A row that is drawn.
struct Sample {
    row: Option<Label>,
    column: Option<Label>,
    series: Vec<Label>,
    /// Where the horizontal axis has texts; x says nothing then.
    category: Option<Label>,
    x: f64,
    y: f64,
}

/// Unites what arrives and summarises it.
pub(crate) fn summarise(
    parameters: &PlotParameters,
    inputs: &[Input],
    context: &Context<'_>,
) -> Result<Summary, Failure> {
    check_columns(parameters, inputs)?;
    let roles = references::roles(parameters, inputs, context)?;
    let mut samples = Vec::new();
    let mut dropped = Dropped::default();
    let mut filter = Filter::new(&parameters.filter);
    for input in inputs.iter().filter(|input| !roles.is_line(&input.source)) {
        context.check_cancelled()?;
        collect(parameters, input, &mut filter, &mut dropped, &mut samples)?;
    }
    filter.warn_of_unmet(context);
    dropped.warn(context);
    if samples.is_empty() {
        return Err(nothing_left(parameters, inputs));
    }
    let rows = levels(samples.iter().map(|sample| &sample.row));
    let columns = levels(samples.iter().map(|sample| &sample.column));
    let series = levels(samples.iter().map(|sample| &sample.series));
    let categories = levels(samples.iter().filter_map(|sample| sample.category.as_ref()));
    check_counts(parameters, [&rows, &columns], series.len(), categories.len())?;
    let points = points(
        parameters,
        samples,
        [&rows, &columns],
        &series,
        &categories,
        context,
    )?;
    let (references, lines) = references::lines(parameters, inputs, &roles, [&rows, &columns], context)?;
    Ok(Summary {
        rows,
        columns,
        series,
        categories,
        points,
        references,
        lines,
    })
}

/// The same check as before the run, now that the schemas are known.
fn check_columns(parameters: &PlotParameters, inputs: &[Input]) -> Result<(), Failure> {
    let wired: Vec<(&str, TableSchema)> = inputs
        .iter()
        .map(|input| ("table", columns::schema(input)))
        .collect();
    let problems = <Plot as provenir_api::Kind>::check(parameters, &wired);
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let messages: Vec<String> = problems
        .iter()
        .map(|problem| format!("{} (parameter `{}`)", problem.message, problem.pointer))
        .collect();
    let failure = Failure::stage(messages.join("; "));
    Err(match &first.help {
        Some(help) => failure.help(help),
        None => failure,
    })
}

/// Rows that are not drawn although no filter excludes them, by source and by the column in which they lack a value.
#[derive(Default)]
struct Dropped(BTreeMap<(String, String), usize>);

impl Dropped {
    fn count(&mut self, source: &str, column: String) {
        *self.0.entry((source.to_owned(), column)).or_default() += 1;
    }

    fn warn(&self, context: &Context<'_>) {
        for ((source, column), count) in &self.0 {
            let (rows, have) = if *count == 1 {
                ("row", "is")
            } else {
                ("rows", "are")
            };
            context.warn(format!(
                "{count} {rows} of `{source}` {have} not drawn: no finite value in `{column}`"
            ));
        }
    }
}

fn collect(
    parameters: &PlotParameters,
    input: &Input,
    filter: &mut Filter<'_>,
    dropped: &mut Dropped,
    samples: &mut Vec<Sample>,
) -> Result<(), Failure> {
    let category = columns::is_text(input, &parameters.x)
        .then(|| columns::factor(input, &parameters.x))
        .transpose()?;
    let x = match category {
        Some(_) => vec![0.0; input.table.rows()],
        None => columns::numbers(input, &parameters.x, true)?,
    };
    let y = columns::numbers(input, &parameters.y, false)?;
    let facet = |name: &Option<String>| name.as_ref().map(|name| columns::factor(input, name)).transpose();
    let (row, column) = (facet(&parameters.rows)?, facet(&parameters.columns)?);
    let series: Vec<(&str, Factor)> = parameters
        .series
        .iter()
        .map(|name| columns::factor(input, name).map(|factor| (name, factor)))
        .collect::<Result<_, _>>()?;
    let filter = filter.on(input)?;
    for index in 0..input.table.rows() {
        if !filter.keeps(index) {
            continue;
        }
        let mut missing = None;
        let mut label = |name: &str, factor: &Factor| {
            let label = factor.get(index).cloned();
            if label.is_none() {
                missing.get_or_insert_with(|| name.to_owned());
            }
            label
        };
        let mut facet = |name: &Option<String>, factor: &Option<Factor>| match (name, factor) {
            (Some(name), Some(factor)) => label(name, factor),
            _ => None,
        };
        let row = facet(&parameters.rows, &row);
        let column = facet(&parameters.columns, &column);
        let series: Vec<Label> = series
            .iter()
            .filter_map(|(name, factor)| label(name, factor))
            .collect();
        let category = category.as_ref().and_then(|factor| label(&parameters.x, factor));
        for (name, value) in [(&parameters.x, x[index]), (&parameters.y, y[index])] {
            if !value.is_finite() {
                missing.get_or_insert_with(|| name.clone());
            }
        }
        match missing {
            Some(name) => dropped.count(&input.source, name),
            // Adding zero turns -0.0 into 0.0.
            None => samples.push(Sample {
                row,
                column,
                series,
                category,
                x: x[index] + 0.0,
                y: y[index] + 0.0,
            }),
        }
    }
    Ok(())
}

fn nothing_left(parameters: &PlotParameters, inputs: &[Input]) -> Failure {
    let rows: usize = inputs.iter().map(|input| input.table.rows()).sum();
    let sources: BTreeSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
    let failure = Failure::stage(format!(
        "there is nothing to draw: none of {rows} rows from {} makes a point of `{}` against `{}`",
        list(sources),
        parameters.y,
        parameters.x
    ));
    if parameters.filter.is_empty() {
        failure
    } else {
        failure.help("see whether `where` asks for values that exist")
    }
}

fn levels<'a, T: Ord + Clone + 'a>(values: impl Iterator<Item = &'a T>) -> Vec<T> {
    values.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

fn check_counts(
    parameters: &PlotParameters,
    [rows, columns]: [&[Option<Label>]; 2],
    series: usize,
    categories: usize,
) -> Result<(), Failure> {
    let facets = [
        ("rows", &parameters.rows, rows.len()),
        ("columns", &parameters.columns, columns.len()),
    ];
    for (parameter, name, count) in facets {
        if let Some(name) = name
            && count > MOST_FACETS
        {
            return Err(Failure::stage(format!(
                "`{name}` has {count} values, too many for {parameter} of panels: at most {MOST_FACETS} fit"
            ))
            .help("select values by `where`, or draw several figures by `over`"));
        }
    }
    if categories > MOST_CATEGORIES {
        return Err(Failure::stage(format!(
            "`{}` has {categories} values, too many to stand beside each other: at most {MOST_CATEGORIES} do",
            parameters.x
        ))
        .help("select values by `where`, or draw several figures by `over`"));
    }
    if series > Figure::STYLES {
        let names = list(parameters.series.iter());
        return Err(Failure::stage(format!(
            "{names} make {series} series; at most {} can be told apart",
            Figure::STYLES
        ))
        .help("use `columns` or `rows` for one of them, select values by `where`, or leave one out to average over it"));
    }
    Ok(())
}

fn points(
    parameters: &PlotParameters,
    samples: Vec<Sample>,
    [rows, columns]: [&[Option<Label>]; 2],
    series: &[Vec<Label>],
    categories: &[Label],
    context: &Context<'_>,
) -> Result<Vec<Point>, Failure> {
    // Every value is among its levels by construction.
    let mut keyed: Vec<([usize; 3], f64, f64)> = samples
        .into_iter()
        .map(|sample| {
            let key = [
                rows.partition_point(|level| *level < sample.row),
                columns.partition_point(|level| *level < sample.column),
                series.partition_point(|level| *level < sample.series),
            ];
            let x = match &sample.category {
                Some(category) => categories.partition_point(|level| level < category) as f64,
                None => sample.x,
            };
            (key, x, sample.y)
        })
        .collect();
    keyed.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
    let root = Stream::new(parameters.seed, "plot bootstrap");
    let mut points = Vec::new();
    for group in keyed.chunk_by(|left, right| left.0 == right.0 && left.1.total_cmp(&right.1).is_eq()) {
        context.check_cancelled()?;
        let ([row, column, one], x, _) = group[0];
        let mut values: Vec<f64> = group.iter().map(|(_, _, y)| *y).collect();
        let Some(sorted) = Sorted::new(&mut values) else {
            continue;
        };
        let y = sorted.statistic(parameters.statistic);
        // A stream per point, named by what it shows: what else is drawn does not change it.
        let stream = || {
            let mut shown = format!("{:?} {:?} {:?}", rows[row], columns[column], series[one]);
            match categories.get(x as usize) {
                Some(category) => {
                    // Writing to a string cannot fail.
                    let _ = write!(shown, " {category:?}");
                    root.child(&shown, 0)
                }
                None => root.child(&shown, x.to_bits()),
            }
        };
        let band = sorted.band(
            parameters.band,
            y,
            parameters.statistic,
            parameters.confidence,
            stream,
        );
        points.push(Point {
            row,
            column,
            series: one,
            x,
            y,
            band,
            count: sorted.count(),
        });
    }
    Ok(points)
}

/// Says what was perhaps meant by a name that is not there.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", list(known)),
    }
}
