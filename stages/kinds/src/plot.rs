//! `plot`: draws tables as a figure.
//!
//! Tables that arrive are united: the labels of gathered axes and the name of each table's origin (`source`) become
//! columns, and rows are appended. Rows that agree in facet, series and x make one point.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::schema::{join, list, nearest};
use provenir_api::{Determinism, Kind, Parameters, Problem, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};

mod arriving;
mod choice;

pub use choice::{Names, Values};

/// The column that says which member of a union a row comes from.
pub const SOURCE: &str = "source";

/// The pointer of the parameter that names the column of the horizontal axis.
const X: &str = "/x";

/// How many pixels the PNG may have.
pub const MOST_PIXELS: u32 = 50_000_000;

/// Parameters of `plot`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlotParameters {
    /// Column of the horizontal axis: numbers; or texts, which stand beside each other as categories, with points and error
    /// bars for curves and bands.
    #[schemars(length(min = 1))]
    pub x: String,
    /// Column of the vertical axis: numbers, or truth values, whose mean is a share.
    #[schemars(length(min = 1))]
    pub y: String,
    /// Column or columns whose values tell curves apart.
    #[serde(default)]
    pub series: Names,
    /// Column whose values become columns of panels.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub columns: Option<String>,
    /// Column whose values become rows of panels.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub rows: Option<String>,
    /// Which rows make points: for each column named, the value or the values it may have.
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<String, Values>,
    /// How the rows at one point become its y.
    #[serde(default)]
    pub statistic: Statistic,
    /// What the band around a curve shows.
    #[serde(default)]
    pub band: Band,
    /// Level of the confidence interval.
    #[serde(default = "default_confidence")]
    #[schemars(range(max = 0.999), extend("exclusiveMinimum" = 0.0))]
    pub confidence: f64,
    /// Seed of the bootstrap.
    #[serde(default)]
    pub seed: u64,
    /// Horizontal lines to compare with. A source without x and without series columns is drawn as one even where it is not
    /// listed here; `labels` names it.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub reference: Vec<Reference>,
    /// Values of series and facets in the order wanted; others follow, sorted. A series keeps the style of its place here, so
    /// that figures that give the same order draw a method alike, whichever of them they show.
    #[serde(default)]
    pub order: Vec<String>,
    /// How column names and values of series and facets are written: `{ rbc = "RBC", epsilon = "Fraction of outliers" }`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Title of the figure.
    #[serde(default)]
    pub title: Option<String>,
    /// Label of the horizontal axis; the column's, where absent.
    #[serde(default)]
    pub x_label: Option<String>,
    /// Label of the vertical axis; the column's, where absent.
    #[serde(default)]
    pub y_label: Option<String>,
    /// Scale of the horizontal axis.
    #[serde(default)]
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    #[serde(default)]
    pub y_scale: Scale,
    /// Ends of the horizontal axis; around the data, where absent.
    #[serde(default)]
    pub x_limits: Option<[f64; 2]>,
    /// Ends of the vertical axis; around the data, where absent.
    #[serde(default)]
    pub y_limits: Option<[f64; 2]>,
    /// Which panels have one vertical axis in common.
    #[serde(default)]
    pub share_y: Share,
    /// Width and height in inches; by the number of panels, where absent.
    #[serde(default)]
    #[schemars(inner(range(min = 1.0, max = 60.0)))]
    pub size: Option<[f64; 2]>,
    /// Resolution of the PNG in pixels per inch.
    #[serde(default = "default_dpi")]
    #[schemars(range(min = 36, max = 1200))]
    pub dpi: u32,
}

fn default_confidence() -> f64 {
    0.95
}

fn default_dpi() -> u32 {
    200
}

/// A horizontal line: the statistic of some rows in each panel, or a constant.
///
/// Rows that lack a facet's column count in every panel. A source that a reference takes whole is not drawn as points, too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// How the legend names it.
    #[schemars(length(min = 1))]
    pub label: String,
    /// The source whose rows it summarises (`demos.episodes`).
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub source: Option<String>,
    /// Which rows it summarises: for each column named, the value or the values it may have.
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<String, Values>,
    /// The column it summarises; the figure's y, where absent.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub y: Option<String>,
    /// A constant instead of rows.
    #[serde(default)]
    pub value: Option<f64>,
}

/// How many numbers become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Median.
    Median,
    /// Interquartile mean: the mean of what remains when a quarter is cut off at each end.
    Iqm,
}

/// The spread, or the uncertainty, of the numbers at a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// One standard deviation (n − 1) to each side.
    #[default]
    Std,
    /// One standard error of the mean to each side.
    Sem,
    /// From the first quartile to the third.
    Quartiles,
    /// From the least to the greatest.
    MinMax,
    /// Percentile bootstrap interval of the statistic at the level `confidence`.
    Ci,
    /// No band.
    None,
}

/// How numbers are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences, equal lengths.
    #[default]
    Linear,
    /// Equal ratios, equal lengths.
    Log,
}

/// Which panels have one vertical axis in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// All.
    #[default]
    All,
    /// Those of one row.
    Row,
    /// Those of one column.
    Column,
    /// None.
    None,
}

impl Parameters for PlotParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (pointer, limits, scale, scale_pointer) in [
            ("/x_limits", self.x_limits, self.x_scale, "/x_scale"),
            ("/y_limits", self.y_limits, self.y_scale, "/y_scale"),
        ] {
            let Some([low, high]) = limits else { continue };
            if low >= high {
                problems.push(Problem::new(
                    pointer,
                    format!("the first limit must be below the second, is {low} against {high}"),
                ));
            } else if scale == Scale::Log && low <= 0.0 {
                let message = format!("a log scale begins above 0, not at {low}");
                problems.push(Problem::new(pointer, message).beside([scale_pointer]));
            }
        }
        if let Some([width, height]) = self.size {
            let dpi = f64::from(self.dpi);
            if width * dpi * height * dpi > f64::from(MOST_PIXELS) {
                let message = format!(
                    "{width} by {height} inches have more than {MOST_PIXELS} pixels at {dpi} an inch"
                );
                problems.push(Problem::new("/dpi", message).beside(["/size"]));
            }
        }
        let mut seen = BTreeSet::new();
        for name in &self.order {
            if !seen.insert(name) {
                problems.push(Problem::new("/order", format!("\"{name}\" is listed twice")));
            }
        }
        for (index, reference) in self.reference.iter().enumerate() {
            let pointer = format!("/reference/{index}");
            let rows = reference.source.is_some() || !reference.filter.is_empty();
            if rows && reference.value.is_some() {
                problems.push(Problem::new(
                    pointer,
                    "a reference takes its height from rows (`source`, `where`) or from `value`, not from both",
                ));
            } else if !rows && reference.value.is_none() {
                problems.push(
                    Problem::new(pointer, "a reference needs rows to summarise, or a `value`")
                        .help("name the rows by `source` or `where`"),
                );
            } else if reference.value.is_some() && reference.y.is_some() {
                problems.push(Problem::new(
                    join(&pointer, "y"),
                    "a reference with a `value` reads no column",
                ));
            }
        }
        problems
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        if self.band == Band::Ci {
            Vec::new()
        } else {
            vec!["/confidence", "/seed"]
        }
    }
}

impl PlotParameters {
    /// The columns that are read, each with the pointer of the parameter that names it.
    fn needs(&self) -> Vec<Need<'_>> {
        let mut needs = vec![
            Need::number(X.to_owned(), &self.x),
            Need::number("/y".to_owned(), &self.y),
        ];
        let series = self.series.iter().map(|name| ("/series", name));
        let columns = self.columns.iter().map(|name| ("/columns", name.as_str()));
        let rows = self.rows.iter().map(|name| ("/rows", name.as_str()));
        for (pointer, name) in series.chain(columns).chain(rows) {
            needs.push(Need::label(pointer.to_owned(), name));
        }
        let filter = |pointer: &str, name| Need {
            key: true,
            ..Need::label(join(pointer, name), name)
        };
        needs.extend(self.filter.keys().map(|name| filter("/where", name)));
        for (index, reference) in self.reference.iter().enumerate() {
            let pointer = format!("/reference/{index}");
            needs.extend(
                reference
                    .y
                    .iter()
                    .map(|name| Need::number(join(&pointer, "y"), name)),
            );
            let pointer = join(&pointer, "where");
            needs.extend(reference.filter.keys().map(|name| filter(&pointer, name)));
        }
        needs
    }
}

struct Need<'a> {
    pointer: String,
    name: &'a str,
    number: bool,
    key: bool,
}

impl<'a> Need<'a> {
    fn number(pointer: String, name: &'a str) -> Self {
        Self {
            pointer,
            name,
            number: true,
            key: false,
        }
    }

    fn label(pointer: String, name: &'a str) -> Self {
        Self {
            number: false,
            ..Self::number(pointer, name)
        }
    }

    fn problem(&self, tables: &[&TableSchema]) -> Option<Problem> {
        if self.name == SOURCE && !self.number {
            return None;
        }
        let mut found = tables
            .iter()
            .filter_map(|table| table.column(self.name))
            .peekable();
        let mut problem = if found.peek().is_some() {
            let unfit = found.find(|column| !self.takes(&column.kind))?;
            let wanted = if self.pointer == X {
                "numbers or texts"
            } else if self.number {
                "numbers"
            } else {
                "numbers, truth values or texts"
            };
            Problem::new(
                &*self.pointer,
                format!("column `{}` must hold {wanted}; it is {}", self.name, unfit.kind),
            )
        } else if tables.iter().any(|table| table.open) {
            return None;
        } else {
            let known: BTreeSet<&str> = tables
                .iter()
                .flat_map(|table| &table.columns)
                .map(|column| column.name.as_str())
                .chain([SOURCE])
                .collect();
            let problem = Problem::new(
                &*self.pointer,
                format!("no table that arrives has a column `{}`", self.name),
            );
            problem.help(match nearest(self.name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "the columns are {}; an axis is a column where what is drawn varies over it",
                    list(known)
                ),
            })
        };
        problem.key = self.key;
        Some(problem)
    }

    fn takes(&self, kind: &ColumnType) -> bool {
        match kind {
            ColumnType::UInt32
            | ColumnType::UInt64
            | ColumnType::Int64
            | ColumnType::Float32
            | ColumnType::Float64 => true,
            ColumnType::Bool => self.pointer != X,
            ColumnType::Utf8 => !self.number || self.pointer == X,
            ColumnType::FixedList(_) | ColumnType::List(_) => false,
        }
    }
}

/// The declaration of `plot`.
pub struct Plot;

impl Kind for Plot {
    type Parameters = PlotParameters;
    const NAME: &'static str = "plot";
    const SUMMARY: &'static str = "Draws tables as a figure: curves with bands, reference lines, panels.";
    const REVISIONS: &'static [Revision] = &[
        // 2: figures carry a seal.
        // 3: a figure is a PDF, too.
        // 4: where colours begin again, other markers go with them.
        Revision {
            part: "plot",
            number: 4,
        },
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["table"];

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "table",
            doc: "Tables to draw; labels of gathered axes and `source` become columns.",
            arity: Arity::Many,
            required: true,
            content: Content::Table(TableSchema::any()),
        }]
    }

    fn outputs() -> Vec<OutputPort> {
        let port = |name, doc, content| OutputPort {
            name,
            doc,
            content,
            volatile: false,
        };
        vec![
            port("svg", "The figure.", Content::File("svg".to_owned())),
            port("png", "The same as pixels.", Content::File("png".to_owned())),
            port(
                "pdf",
                "The same as a page, its texts in an embedded font: for papers.",
                Content::File("pdf".to_owned()),
            ),
            port(
                "data",
                "What is drawn: one row per point, with its `category` where the horizontal axis has such, and one per panel and \
                 reference line.",
                Content::Table(data()),
            ),
        ]
    }

    fn check(parameters: &PlotParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        let tables: Vec<&TableSchema> = wired
            .iter()
            .filter(|(port, _)| *port == "table")
            .map(|(_, schema)| schema)
            .collect();
        if tables.is_empty() {
            return Vec::new();
        }
        let needs = parameters.needs();
        let mut problems: Vec<Problem> = needs.iter().filter_map(|need| need.problem(&tables)).collect();
        problems.extend(categories(parameters, &tables));
        problems.extend(arriving::problems(parameters, &tables));
        problems
    }
}

/// What does not go with the values of the horizontal axis.
fn categories(parameters: &PlotParameters, tables: &[&TableSchema]) -> Vec<Problem> {
    let columns = tables.iter().filter_map(|table| table.column(&parameters.x));
    let (texts, others): (Vec<_>, Vec<_>) = columns.partition(|column| column.kind == ColumnType::Utf8);
    let Some(text) = texts.first() else {
        return Vec::new();
    };
    let name = &text.name;
    let mut problems = Vec::new();
    if let Some(other) = others.first() {
        let message = format!(
            "column `{name}` holds texts in one table, and is {} in another",
            other.kind
        );
        problems.push(Problem::new(X, message));
    }
    if parameters.x_limits.is_some() {
        let message = format!("column `{name}` holds texts, which have no limits");
        problems.push(Problem::new("/x_limits", message).help("select categories by `where`"));
    }
    if parameters.x_scale == Scale::Log {
        let message = format!("column `{name}` holds texts, which have no scale");
        problems.push(Problem::new("/x_scale", message));
    }
    problems
}

/// The columns of the port `data`. `series` is set for points, `reference` for reference lines, `column` and `row` where there are
/// such facets; `count` is the number of rows behind y. Where the horizontal axis has categories, points have no `x` and a further
/// column `category`.
pub fn data() -> TableSchema {
    let text = |name| Column::new(name, ColumnType::Utf8).nullable();
    let float = |name| Column::new(name, ColumnType::Float64);
    TableSchema::new(vec![
        text("row"),
        text("column"),
        text("series"),
        text("reference"),
        float("x").nullable(),
        float("y"),
        float("low").nullable(),
        float("high").nullable(),
        Column::new("count", ColumnType::UInt64),
    ])
    .open()
}
