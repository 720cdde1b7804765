//! From what is drawn to how it looks: names, order and styles.

use std::collections::BTreeSet;
use std::fmt::Write;

use provenir_api::{FigureIdentity, Label};
use provenir_execution::Input;
use provenir_kinds::plot::{Band, PlotParameters, Statistic};

use crate::columns::shown;
use crate::figure::{Axis, Curve, Figure, Line, Panel, Point, Series};
use crate::summary::{self, Summary};
use crate::ticks::grouped;

/// The share of its room that the points of a category take.
const CROWD: f64 = 0.6;
/// Points in an inch.
const INCH: f64 = 72.0;

/// The figure of a summary.
pub(crate) fn figure(
    parameters: &PlotParameters,
    summary: &Summary,
    inputs: &[Input],
    identity: FigureIdentity,
) -> Figure {
    let rank = |label: &Label| {
        let text = shown(label);
        parameters
            .order
            .iter()
            .position(|wanted| *wanted == text)
            .unwrap_or(parameters.order.len())
    };
    let facet_order = |facets: &[Option<Label>]| {
        let mut order: Vec<usize> = (0..facets.len()).collect();
        order.sort_by_key(|place| (facets[*place].as_ref().map_or(0, rank), *place));
        order
    };
    let (rows, columns) = (facet_order(&summary.rows), facet_order(&summary.columns));
    let mut categories: Vec<usize> = (0..summary.categories.len()).collect();
    categories.sort_by_key(|place| (rank(&summary.categories[*place]), *place));
    let mut series: Vec<usize> = (0..summary.series.len()).collect();
    series.sort_by_key(|place| {
        (
            summary.series[*place].iter().map(rank).collect::<Vec<_>>(),
            *place,
        )
    });
    let panels = rows
        .iter()
        .flat_map(|row| {
            columns
                .iter()
                .map(|column| panel(summary, *row, *column, &series, &categories))
        })
        .collect();
    let title = |name: &Option<String>, facets: &[Option<Label>], order: &[usize]| -> Vec<String> {
        let facet = |place: &usize| match (name, &facets[*place]) {
            (Some(name), Some(label)) => value(parameters, name, label),
            _ => String::new(),
        };
        order.iter().map(facet).collect()
    };
    let styles = styles(parameters, summary, &series);
    let labels = series.iter().map(|place| {
        let values = parameters.series.iter().zip(&summary.series[*place]);
        values
            .map(|(name, label)| value(parameters, name, label))
            .collect::<Vec<_>>()
            .join(", ")
    });
    let axis = |column: &str, label: &Option<String>, scale, limits| Axis {
        label: label
            .clone()
            .unwrap_or_else(|| axis_label(parameters, column, inputs)),
        scale,
        limits,
    };
    Figure {
        title: parameters.title.clone().unwrap_or_default(),
        description: description(parameters, summary),
        x: axis(
            &parameters.x,
            &parameters.x_label,
            parameters.x_scale,
            parameters.x_limits,
        ),
        categories: categories
            .iter()
            .map(|place| value(parameters, &parameters.x, &summary.categories[*place]))
            .collect(),
        y: axis(
            &parameters.y,
            &parameters.y_label,
            parameters.y_scale,
            parameters.y_limits,
        ),
        share_y: parameters.share_y,
        columns: title(&parameters.columns, &summary.columns, &columns),
        rows: title(&parameters.rows, &summary.rows, &rows),
        panels,
        series: labels
            .zip(styles)
            .map(|(label, style)| Series { label, style })
            .collect(),
        references: summary.references.clone(),
        size: parameters.size.map(|size| size.map(|side| side * INCH)),
        identity,
    }
}

fn panel(summary: &Summary, row: usize, column: usize, series: &[usize], categories: &[usize]) -> Panel {
    // The points of a category stand beside each other, in the order of the legend.
    let beside = |point: &summary::Point, place: usize| {
        let middle = (series.len() - 1) as f64 / 2.0;
        let aside = (place as f64 - middle) * CROWD / series.len() as f64;
        let shown = categories.iter().position(|wanted| *wanted == point.x as usize);
        shown.map_or(point.x, |shown| shown as f64 + aside)
    };
    let curves = series.iter().enumerate().filter_map(|(place, wanted)| {
        let mut points: Vec<Point> = summary
            .points
            .iter()
            .filter(|point| point.row == row && point.column == column && point.series == *wanted)
            .map(|point| Point {
                x: beside(point, place),
                y: point.y,
                band: point.band,
            })
            .collect();
        points.sort_by(|left, right| left.x.total_cmp(&right.x));
        (!points.is_empty()).then_some(Curve {
            series: place,
            points,
        })
    });
    let lines = summary
        .lines
        .iter()
        .filter(|line| line.row == row && line.column == column);
    Panel {
        curves: curves.collect(),
        lines: lines
            .map(|line| Line {
                reference: line.reference,
                y: line.y,
            })
            .collect(),
    }
}

/// Styles in the order of the legend. A series that `order` lists has the style of its place there; the others take
/// what is free.
fn styles(parameters: &PlotParameters, summary: &Summary, series: &[usize]) -> Vec<usize> {
    let listed = |place: usize| match &summary.series[place][..] {
        [label] => parameters
            .order
            .iter()
            .position(|wanted| *wanted == shown(label))
            .filter(|style| *style < Figure::STYLES),
        _ => None,
    };
    let taken: BTreeSet<usize> = series.iter().filter_map(|place| listed(*place)).collect();
    // Styles of listed values that this figure does not show stay free for it only where nothing else is.
    let (reserved, free): (Vec<usize>, Vec<usize>) = (0..Figure::STYLES)
        .filter(|style| !taken.contains(style))
        .partition(|style| *style < parameters.order.len());
    let mut free = free.into_iter().chain(reserved);
    series
        .iter()
        .map(|place| listed(*place).or_else(|| free.next()).unwrap_or_default())
        .collect()
}

/// A column's name for people.
fn column_name(parameters: &PlotParameters, column: &str) -> String {
    parameters
        .labels
        .get(column)
        .cloned()
        .unwrap_or_else(|| column.replace('_', " "))
}

fn axis_label(parameters: &PlotParameters, column: &str, inputs: &[Input]) -> String {
    let name = column_name(parameters, column);
    let mut units: BTreeSet<&str> = inputs
        .iter()
        .filter_map(|input| input.table.unit(column))
        .collect();
    match (units.pop_first(), units.is_empty()) {
        (Some(unit), true) => format!("{name} ({unit})"),
        _ => name,
    }
}

/// A value's name for people: numbers and truth values say nothing without their column's.
fn value(parameters: &PlotParameters, column: &str, label: &Label) -> String {
    let text = shown(label);
    if let Some(name) = parameters.labels.get(text.as_ref()) {
        return name.clone();
    }
    let text = match label {
        Label::Text(text) => return text.clone(),
        Label::Integer(value) => grouped(&value.unsigned_abs().to_string()),
        _ => text.trim_start_matches('-').to_owned(),
    };
    let sign = if label.as_number().is_some_and(|value| value < 0.0) {
        "−"
    } else {
        ""
    };
    format!("{} = {sign}{text}", column_name(parameters, column))
}

fn description(parameters: &PlotParameters, summary: &Summary) -> String {
    let statistic = match parameters.statistic {
        Statistic::Mean => "mean",
        Statistic::Median => "median",
        Statistic::Iqm => "interquartile mean",
    };
    let band = match parameters.band {
        Band::Std => "bands of one standard deviation to each side".to_owned(),
        Band::Sem => "bands of one standard error to each side".to_owned(),
        Band::Quartiles => "bands from the first to the third quartile".to_owned(),
        Band::MinMax => "bands from the least to the greatest value".to_owned(),
        Band::Ci => format!(
            "bands of {} % bootstrap confidence",
            parameters.confidence * 100.0
        ),
        Band::None => "no bands".to_owned(),
    };
    let counts = summary.points.iter().map(|point| point.count);
    let (least, most) = (
        counts.clone().min().unwrap_or_default(),
        counts.max().unwrap_or_default(),
    );
    let counts = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    let mut text = format!(
        "The {statistic} of {} against {}, with {band}; {} points of {counts} values each",
        parameters.y,
        parameters.x,
        summary.points.len(),
    );
    let named = |text: &mut String, what: &str, values: Vec<String>| {
        if !values.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "; {what}: {}", values.join(", "));
        }
    };
    let flat = |labels: &[Option<Label>]| {
        labels
            .iter()
            .flatten()
            .map(|label| shown(label).into_owned())
            .collect::<Vec<_>>()
    };
    let series = summary
        .series
        .iter()
        .filter(|labels| !labels.is_empty())
        .map(|labels| {
            labels
                .iter()
                .map(|label| shown(label).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        });
    named(&mut text, "curves", series.collect());
    named(&mut text, "columns", flat(&summary.columns));
    named(&mut text, "rows", flat(&summary.rows));
    named(&mut text, "reference lines", summary.references.clone());
    text.push('.');
    text
}
