//! What is drawn, as a table.

use std::borrow::Cow;

use provenir_api::Label;
use provenir_execution::Failure;
use provenir_kinds::plot::PlotParameters;
use provenir_table::{Table, TableBuilder};

use crate::columns::shown;
use crate::summary::Summary;

/// The table of the port `data`: points, then reference lines. It holds what is drawn and nothing of how it looks, so
/// that a changed title or order changes none of it; what the columns stand for is in its metadata.
pub(crate) fn table(parameters: &PlotParameters, summary: &Summary) -> Result<Table, Failure> {
    let text = |label: &Option<Label>| label.as_ref().map(|label| shown(label).into_owned());
    let points = summary.points.iter().map(|point| {
        let series: Vec<_> = summary.series[point.series].iter().map(shown).collect();
        Drawn {
            row: text(&summary.rows[point.row]),
            column: text(&summary.columns[point.column]),
            series: (!series.is_empty()).then(|| series.join(", ")),
            reference: None,
            category: summary.category(point).map(shown),
            x: summary.category(point).is_none().then_some(point.x),
            y: point.y,
            band: point.band,
            count: point.count,
        }
    });
    let lines = summary.lines.iter().map(|line| Drawn {
        row: text(&summary.rows[line.row]),
        column: text(&summary.columns[line.column]),
        series: None,
        category: None,
        reference: Some(&summary.references[line.reference]),
        x: None,
        y: line.y,
        band: None,
        count: line.count,
    });
    let rows: Vec<Drawn<'_>> = points.chain(lines).collect();
    let mut builder = TableBuilder::new()
        .optional_utf8("row", rows.iter().map(|row| row.row.as_ref()))
        .optional_utf8("column", rows.iter().map(|row| row.column.as_ref()))
        .optional_utf8("series", rows.iter().map(|row| row.series.as_ref()))
        .optional_utf8("reference", rows.iter().map(|row| row.reference))
        .optional_f64("x", rows.iter().map(|row| row.x).collect())
        .f64("y", rows.iter().map(|row| row.y).collect())
        .optional_f64(
            "low",
            rows.iter().map(|row| row.band.map(|[low, _]| low)).collect(),
        )
        .optional_f64(
            "high",
            rows.iter().map(|row| row.band.map(|[_, high]| high)).collect(),
        )
        .u64("count", rows.iter().map(|row| row.count as u64).collect());
    if !summary.categories.is_empty() {
        builder = builder.optional_utf8("category", rows.iter().map(|row| row.category.as_ref()));
    }
    let joined = parameters.series.iter().collect::<Vec<_>>().join(", ");
    let names = [
        ("row", parameters.rows.as_deref()),
        ("column", parameters.columns.as_deref()),
        ("series", (!joined.is_empty()).then_some(joined.as_str())),
        ("x", Some(parameters.x.as_str())),
        ("y", Some(parameters.y.as_str())),
    ];
    for (key, name) in names {
        if let Some(name) = name {
            builder = builder.metadata(key, name);
        }
    }
    Ok(builder.build()?)
}

struct Drawn<'a> {
    row: Option<String>,
    column: Option<String>,
    series: Option<String>,
    reference: Option<&'a String>,
    category: Option<Cow<'a, str>>,
    x: Option<f64>,
    y: f64,
    band: Option<[f64; 2]>,
    count: usize,
}
