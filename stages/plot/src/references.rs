//! Reference lines: what a figure's curves are held against.

use std::collections::BTreeSet;

use provenir_api::Label;
use provenir_execution::{Context, Failure, Input};
use provenir_kinds::plot::{PlotParameters, Reference};

use crate::columns;
use crate::filter::Filter;
use crate::statistics::Sorted;
use crate::summary::{Line, hint};

/// Which sources are lines rather than points.
pub(crate) struct Roles<'a> {
    /// Named by a reference that takes them whole.
    named: BTreeSet<&'a str>,
    /// Without x and without series: all that they can be is one line.
    alone: BTreeSet<&'a str>,
    /// Without x, but with what tells series apart: nothing of them can be drawn.
    unusable: BTreeSet<&'a str>,
}

impl Roles<'_> {
    /// Whether no points come from a source.
    pub(crate) fn is_line(&self, source: &str) -> bool {
        [&self.named, &self.alone, &self.unusable]
            .iter()
            .any(|sources| sources.contains(source))
    }
}

/// Decides which sources are points and which are lines.
pub(crate) fn roles<'a>(
    parameters: &'a PlotParameters,
    inputs: &'a [Input],
    context: &Context<'_>,
) -> Result<Roles<'a>, Failure> {
    let sources: BTreeSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
    let mut roles = Roles {
        named: BTreeSet::new(),
        alone: BTreeSet::new(),
        unusable: BTreeSet::new(),
    };
    for reference in &parameters.reference {
        let Some(source) = &reference.source else { continue };
        if !sources.contains(source.as_str()) {
            return Err(Failure::stage(format!(
                "the reference `{}` summarises `{source}`, which is not among what arrives",
                reference.label
            ))
            .help(hint(source, sources.iter().copied())));
        }
        if reference.filter.is_empty() {
            roles.named.insert(source);
        }
    }
    let mentioned = |source: &str| {
        parameters
            .reference
            .iter()
            .any(|reference| reference.source.as_deref() == Some(source))
    };
    for source in sources {
        let tables = || inputs.iter().filter(|input| input.source == source);
        if roles.named.contains(source) || tables().any(|input| columns::has(input, &parameters.x)) {
            continue;
        }
        let series = || {
            parameters
                .series
                .iter()
                .filter(|name| *name != provenir_kinds::plot::SOURCE)
        };
        let has_series = tables().any(|input| series().any(|name| columns::has(input, name)));
        let has_y = tables().any(|input| columns::has(input, &parameters.y));
        if has_y && !has_series && !mentioned(source) {
            roles.alone.insert(source);
            continue;
        }
        roles.unusable.insert(source);
        if !mentioned(source) {
            let lacking = if has_y { &parameters.x } else { &parameters.y };
            context.warn(format!(
                "`{source}` has no column `{lacking}`: nothing of it is drawn (to draw a line, name it in a `reference`)"
            ));
        }
    }
    Ok(roles)
}

/// The names of reference lines and, for each panel, their heights.
pub(crate) fn lines(
    parameters: &PlotParameters,
    inputs: &[Input],
    roles: &Roles<'_>,
    facets: [&[Option<Label>]; 2],
    context: &Context<'_>,
) -> Result<(Vec<String>, Vec<Line>), Failure> {
    let alone = roles.alone.iter().map(|source| Reference {
        label: parameters
            .labels
            .get(*source)
            .cloned()
            .unwrap_or_else(|| (*source).to_owned()),
        source: Some((*source).to_owned()),
        filter: std::collections::BTreeMap::new(),
        y: None,
        value: None,
    });
    let references: Vec<Reference> = parameters.reference.iter().cloned().chain(alone).collect();
    let mut lines = Vec::new();
    for (place, reference) in references.iter().enumerate() {
        context.check_cancelled()?;
        let values = match reference.value {
            Some(_) => Vec::new(),
            None => values(parameters, reference, inputs, context)?,
        };
        let [rows, columns] = facets;
        for (row, row_label) in rows.iter().enumerate() {
            for (column, column_label) in columns.iter().enumerate() {
                let matches =
                    |bound: &Option<Label>, panel: &Option<Label>| bound.is_none() || bound == panel;
                let mut here: Vec<f64> = values
                    .iter()
                    .filter(|value| matches(&value.row, row_label) && matches(&value.column, column_label))
                    .map(|value| value.y)
                    .collect();
                let line = |y, count| Line {
                    reference: place,
                    row,
                    column,
                    y,
                    count,
                };
                if let Some(constant) = reference.value {
                    lines.push(line(constant, 0));
                } else if let Some(sorted) = Sorted::new(&mut here) {
                    lines.push(line(sorted.statistic(parameters.statistic), sorted.count()));
                }
            }
        }
        if !lines.iter().any(|line| line.reference == place) {
            context.warn(format!(
                "the reference `{}` belongs to none of the panels",
                reference.label
            ));
        }
    }
    Ok((
        references.into_iter().map(|reference| reference.label).collect(),
        lines,
    ))
}

/// A row behind a reference, and the panels to which it is bound.
struct Value {
    row: Option<Label>,
    column: Option<Label>,
    y: f64,
}

fn values(
    parameters: &PlotParameters,
    reference: &Reference,
    inputs: &[Input],
    context: &Context<'_>,
) -> Result<Vec<Value>, Failure> {
    let name = reference.y.as_ref().unwrap_or(&parameters.y);
    let mut filter = Filter::new(&reference.filter);
    let mut values = Vec::new();
    let mut dropped = 0_usize;
    let concerned = |input: &&Input| {
        reference
            .source
            .as_ref()
            .is_none_or(|source| *source == input.source)
    };
    for input in inputs.iter().filter(concerned) {
        let y = columns::numbers(input, name, false)?;
        let facet =
            |name: &Option<String>| name.as_ref().map(|name| columns::factor(input, name)).transpose();
        let (row, column) = (facet(&parameters.rows)?, facet(&parameters.columns)?);
        let filter = filter.on(input)?;
        for (index, y) in y
            .into_iter()
            .enumerate()
            .filter(|(index, _)| filter.keeps(*index))
        {
            if !y.is_finite() {
                dropped += 1;
                continue;
            }
            let label = |factor: &Option<columns::Factor>| {
                factor.as_ref().and_then(|factor| factor.get(index)).cloned()
            };
            values.push(Value {
                row: label(&row),
                column: label(&column),
                y: y + 0.0,
            });
        }
    }
    filter.warn_of_unmet(context);
    if values.is_empty() {
        return Err(Failure::stage(format!(
            "the reference `{}` has no rows with a finite value in `{name}`",
            reference.label
        ))
        .help("see whether its `source`, `where` and `y` name what arrives"));
    }
    if dropped > 0 {
        context.warn(format!(
            "{dropped} rows do not count for the reference `{}`: they have no finite value in `{name}`",
            reference.label
        ));
    }
    Ok(values)
}
