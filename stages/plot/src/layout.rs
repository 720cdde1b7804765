//! Where everything goes on the paper, in points (1/72 inch) from the top left corner.
//!
//! What is written is measured first and given the room it needs, so that nothing overlaps and nothing is cut off; the
//! panels are as large as asked, or as large as a figure of the size asked leaves them.

use provenir_drawing::font::{Font, Weight, wrap};
use provenir_kinds::plot::Share;

use crate::figure::{Figure, FigureError};
use crate::legend::{self, Legend};
use crate::span::{self, Span};
use crate::text::{Anchor, Text, Turn};
use crate::ticks::{Tick, ticks};

const MARGIN: f64 = 6.0;
const TITLE: f64 = 10.5;
/// Titles of columns and rows.
const STRIP: f64 = 8.5;
/// Names of axes.
const LABEL: f64 = 9.0;
const NUMBER: f64 = 7.5;
/// Distance of two lines of a text, as a share of its size.
pub(crate) const LEADING: f64 = 1.25;
/// How far above its base line a line of text begins, as a share of its size.
const ASCENT: f64 = 0.85;
pub(crate) const TICK_LENGTH: f64 = 2.5;
/// Between a tick and its number.
const NUMBER_GAP: f64 = 2.5;
/// Between neighbouring panels and what belongs to them.
const COLUMN_GAP: f64 = 8.0;
const ROW_GAP: f64 = 10.0;
/// Between the grid of panels and what is around it.
const GAP: f64 = 5.0;
/// Between titles of columns and panels.
const HEAD_GAP: f64 = 3.0;
const LEAST_PANEL: [f64; 2] = [36.0, 30.0];
const TITLE_LINES: usize = 4;
const STRIP_LINES: usize = 3;
const LABEL_LINES: usize = 3;
const CATEGORY_LINES: usize = 3;
/// Between neighbouring categories.
const CATEGORY_GAP: f64 = 4.0;

/// The figure on paper.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) size: [f64; 2],
    /// Row by row.
    pub(crate) panels: Vec<PanelLayout>,
    pub(crate) texts: Vec<Text>,
    pub(crate) legend: Legend,
}

/// A panel on paper.
#[derive(Clone, Debug)]
pub(crate) struct PanelLayout {
    /// Left, top, width, height.
    pub(crate) area: [f64; 4],
    pub(crate) x: Span,
    pub(crate) y: Span,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
}

impl PanelLayout {
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.area[0] + self.x.share(value) * self.area[2]
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.area[1] + (1.0 - self.y.share(value)) * self.area[3]
    }
}

/// Lays a figure out that passed its check.
pub(crate) fn layout(figure: &Figure) -> Result<Layout, FigureError> {
    let (Some(x), Some(y)) = (span::horizontal(figure), span::vertical(figure)) else {
        return Err(FigureError::Empty);
    };
    let columns = figure.columns.len();
    // Wide enough to read; a row of panels narrows them.
    let width = match columns {
        1 => 250.0,
        2 => 185.0,
        3 => 150.0,
        _ => 122.0,
    };
    let panel = [width, (width * 0.66_f64).max(90.0)];
    match figure.size {
        None => Ok(arrange(figure, x, &y, panel, None)),
        Some(size) => fit(figure, x, &y, panel, size),
    }
}

/// Finds the size of panels that fills the figure. Tick labels, and with them the room beside the panels, depend on the
/// size of the panels: hence the repetition.
fn fit(
    figure: &Figure,
    x: Span,
    y: &[Span],
    mut panel: [f64; 2],
    size: [f64; 2],
) -> Result<Layout, FigureError> {
    let counts = [figure.columns.len() as f64, figure.rows.len() as f64];
    let mut best: Option<Layout> = None;
    for _ in 0..24 {
        let tried = arrange(figure, x, y, panel, Some(size[0]));
        let excess = [tried.size[0] - size[0], tried.size[1] - size[1]];
        let fits = excess.iter().all(|excess| *excess < 0.005);
        if fits && best.as_ref().is_none_or(|best| best.extent() < tried.extent()) {
            best = Some(tried);
        }
        let next = [0, 1].map(|side| panel[side] - excess[side] / counts[side]);
        if fits
            && next
                .iter()
                .zip(panel)
                .all(|(next, panel)| (next - panel).abs() < 0.005)
        {
            break;
        }
        panel = next.map(|side| side.max(1.0));
    }
    let Some(mut layout) = best else {
        return Err(FigureError::TooSmall {
            found: panel,
            needed: LEAST_PANEL,
        });
    };
    let [_, _, width, height] = layout.panels[0].area;
    if width < LEAST_PANEL[0] || height < LEAST_PANEL[1] {
        return Err(FigureError::TooSmall {
            found: [width, height],
            needed: LEAST_PANEL,
        });
    }
    layout.center(size);
    Ok(layout)
}

fn arrange(figure: &Figure, x: Span, y: &[Span], panel: [f64; 2], width: Option<f64>) -> Layout {
    let ticks = Ticks {
        x: horizontal_ticks(figure, x, panel[0]),
        y: y.iter().map(|span| vertical_ticks(*span, panel[1])).collect(),
    };
    let across = Across::new(figure, x, &ticks, panel);
    let inner_width = width.unwrap_or(across.width) - 2.0 * MARGIN;
    let mut texts = Vec::new();
    let top = titles(figure, &across, panel[0], inner_width, &mut texts);
    let mut panels = Vec::with_capacity(figure.panels.len());
    for (row, strip) in across.strips.iter().enumerate() {
        let panel_top = top + row as f64 * (panel[1] + ROW_GAP);
        for (column, left) in across.lefts.iter().enumerate() {
            let index = row * across.lefts.len() + column;
            let panel = PanelLayout {
                area: [*left, panel_top, panel[0], panel[1]],
                x,
                y: y[index],
                x_ticks: ticks.x.clone(),
                y_ticks: ticks.y[index].clone(),
            };
            texts.extend(numbers(
                figure,
                &panel,
                row + 1 == figure.rows.len(),
                has_numbers(figure, column),
            ));
            panels.push(panel);
        }
        // Lines that read downwards follow each other to the left.
        let back = strip.len().saturating_sub(1) as f64 * STRIP * LEADING;
        let at = [
            across.right + GAP + STRIP * 0.25 + back,
            panel_top + panel[1] / 2.0,
        ];
        let strip = Text::new(strip.clone(), &figure.rows[row], at, STRIP);
        texts.push(strip.bold().anchor(Anchor::Middle).turn(Turn::Right));
    }
    let grid_height = grid_height(figure, panel[1]);
    let at = [MARGIN + LABEL * ASCENT, top + grid_height / 2.0];
    let y_label = Text::new(across.y_label.clone(), &figure.y.label, at, LABEL);
    texts.push(y_label.anchor(Anchor::Middle).turn(Turn::Left));
    let lines = ticks.x.iter().map(|tick| below(figure, tick, panel[0]).len());
    let further = lines.max().unwrap_or(1).max(1) - 1;
    let mut bottom =
        top + grid_height + TICK_LENGTH + NUMBER_GAP + NUMBER + further as f64 * NUMBER * LEADING;
    let x_label = wrap(
        &figure.x.label,
        Weight::Regular,
        LABEL,
        across.right - across.lefts[0],
        LABEL_LINES,
    );
    let at = [across.center(), bottom + 2.0 + LABEL * ASCENT];
    bottom += block(&x_label, LABEL, 2.0);
    texts.push(Text::new(x_label, &figure.x.label, at, LABEL).anchor(Anchor::Middle));
    let legend = legend::arrange(figure, [MARGIN, bottom + GAP], inner_width, across.center());
    if legend.height > 0.0 {
        bottom += GAP + legend.height;
    }
    texts.retain(|text| !text.lines.is_empty());
    Layout {
        size: [across.width.max(legend.right + MARGIN), bottom + MARGIN],
        panels,
        texts,
        legend,
    }
}

struct Ticks {
    x: Vec<Tick>,
    /// Panel by panel.
    y: Vec<Vec<Tick>>,
}

/// What stands side by side: the name of the vertical axis, for each column its numbers and its panels, and the titles
/// of rows.
struct Across {
    y_label: Vec<String>,
    /// Where the panels of each column begin.
    lefts: Vec<f64>,
    /// Where the panels of the last column end.
    right: f64,
    strips: Vec<Vec<String>>,
    /// All of it, with margins.
    width: f64,
}

impl Across {
    fn new(figure: &Figure, x: Span, ticks: &Ticks, [panel_width, panel_height]: [f64; 2]) -> Self {
        let grid_height = grid_height(figure, panel_height).max(LEAST_PANEL[1]);
        let y_label = wrap(&figure.y.label, Weight::Regular, LABEL, grid_height, LABEL_LINES);
        let font = Font::of(Weight::Regular);
        let wide = |tick: &Tick| font.width(&tick.label, NUMBER);
        let widest = |lines: Vec<String>| {
            let widths = lines.iter().map(|line| font.width(line, NUMBER));
            widths.fold(0.0, f64::max)
        };
        // How far the numbers below a panel reach beyond it.
        let reach = |inside: &dyn Fn(f64) -> f64| {
            let reaches = ticks.x.iter().map(|tick| {
                widest(below(figure, tick, panel_width)) / 2.0 - inside(x.share(tick.value)) * panel_width
            });
            reaches.fold(0.0, f64::max)
        };
        let (before, behind) = (reach(&|share| share), reach(&|share| 1.0 - share));
        let columns = figure.columns.len();
        let mut lefts = Vec::with_capacity(columns);
        let mut right = MARGIN + block(&y_label, LABEL, GAP);
        for column in 0..columns {
            let mut room = before;
            if has_numbers(figure, column) {
                let beside = ticks.y.iter().skip(column).step_by(columns).flatten();
                let most = beside.map(wide).fold(0.0, f64::max);
                room = room.max(most + TICK_LENGTH + NUMBER_GAP);
            }
            if column > 0 {
                room += behind + COLUMN_GAP;
            }
            lefts.push(right + room);
            right += room + panel_width;
        }
        let height = panel_height.max(LEAST_PANEL[1]);
        let strip = |title: &String| wrap(title, Weight::Bold, STRIP, height, STRIP_LINES);
        let strips: Vec<Vec<String>> = figure.rows.iter().map(strip).collect();
        let strip_room = strips
            .iter()
            .map(|lines| block(lines, STRIP, GAP))
            .fold(0.0, f64::max);
        Self {
            width: right + behind.max(strip_room) + MARGIN,
            y_label,
            lefts,
            right,
            strips,
        }
    }

    /// The middle of the panels.
    fn center(&self) -> f64 {
        f64::midpoint(self.lefts[0], self.right)
    }
}

/// Whether a column of panels has numbers of its own along the vertical axis.
fn has_numbers(figure: &Figure, column: usize) -> bool {
    column == 0 || matches!(figure.share_y, Share::Column | Share::None)
}

fn grid_height(figure: &Figure, panel_height: f64) -> f64 {
    let rows = figure.rows.len() as f64;
    rows * panel_height + (rows - 1.0) * ROW_GAP
}

/// The title and the titles of columns; says where the panels begin.
fn titles(
    figure: &Figure,
    across: &Across,
    panel_width: f64,
    inner_width: f64,
    texts: &mut Vec<Text>,
) -> f64 {
    let title = wrap(&figure.title, Weight::Bold, TITLE, inner_width, TITLE_LINES);
    let widest = title.iter().map(|line| Font::of(Weight::Bold).width(line, TITLE));
    let at = within(across.center(), widest.fold(0.0, f64::max), inner_width);
    let mut top = MARGIN + block(&title, TITLE, GAP);
    let title = Text::new(title, &figure.title, [at, MARGIN + TITLE * ASCENT], TITLE);
    texts.push(title.bold().anchor(Anchor::Middle));
    let width = panel_width.max(LEAST_PANEL[0]);
    let head = |title: &String| wrap(title, Weight::Bold, STRIP, width, STRIP_LINES);
    let heads: Vec<Vec<String>> = figure.columns.iter().map(head).collect();
    let room = heads
        .iter()
        .map(|lines| block(lines, STRIP, HEAD_GAP))
        .fold(0.0, f64::max);
    top += room;
    for ((lines, title), left) in heads.into_iter().zip(&figure.columns).zip(&across.lefts) {
        // Titles stand on the panels, however many lines the others have.
        let first = top - block(&lines, STRIP, HEAD_GAP) + STRIP * 0.95;
        let at = [left + panel_width / 2.0, first];
        texts.push(Text::new(lines, title, at, STRIP).bold().anchor(Anchor::Middle));
    }
    top
}

/// Where the middle of something `wide` goes: as near to `center` as the margins leave it.
fn within(center: f64, wide: f64, inner_width: f64) -> f64 {
    let half = (wide / 2.0).min(inner_width / 2.0);
    center.min(MARGIN + inner_width - half).max(MARGIN + half)
}

/// The room that lines take, with a gap; none where there are no lines.
fn block(lines: &[String], size: f64, gap: f64) -> f64 {
    if lines.is_empty() {
        0.0
    } else {
        lines.len() as f64 * size * LEADING + gap
    }
}

/// What stands below a mark of the horizontal axis: a number, or a category in as many lines as it needs.
fn below(figure: &Figure, tick: &Tick, panel_width: f64) -> Vec<String> {
    match figure.categories.len() {
        0 => vec![tick.label.clone()],
        count => {
            let room = panel_width / count as f64 - CATEGORY_GAP;
            wrap(
                &tick.label,
                Weight::Regular,
                NUMBER,
                room.max(NUMBER),
                CATEGORY_LINES,
            )
        }
    }
}

fn horizontal_ticks(figure: &Figure, span: Span, width: f64) -> Vec<Tick> {
    if !figure.categories.is_empty() {
        let named = figure.categories.iter().enumerate();
        return named
            .map(|(place, name)| Tick {
                value: place as f64,
                label: name.clone(),
            })
            .collect();
    }
    let points = figure
        .panels
        .iter()
        .flat_map(|panel| &panel.curves)
        .flat_map(|curve| &curve.points);
    let mut values: Vec<f64> = points.map(|point| point.x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let font = Font::of(Weight::Regular);
    let fit = |ticks: &[Tick]| {
        ticks.windows(2).all(|pair| {
            let needed = f64::midpoint(
                font.width(&pair[0].label, NUMBER),
                font.width(&pair[1].label, NUMBER),
            );
            (span.share(pair[1].value) - span.share(pair[0].value)) * width >= needed + 6.0
        })
    };
    ticks(
        span.scale,
        [span.low, span.high],
        &values,
        ((width / 36.0) as usize).max(3),
        fit,
    )
}

fn vertical_ticks(span: Span, height: f64) -> Vec<Tick> {
    let fit = |ticks: &[Tick]| {
        let apart = |pair: &[Tick]| (span.share(pair[1].value) - span.share(pair[0].value)) * height;
        ticks.windows(2).all(|pair| apart(pair) >= NUMBER * 1.6)
    };
    ticks(
        span.scale,
        [span.low, span.high],
        &[],
        (height / 18.0) as usize,
        fit,
    )
}

/// The numbers along the axes of a panel.
fn numbers(figure: &Figure, panel: &PanelLayout, along: bool, beside: bool) -> Vec<Text> {
    let [left, top, width, height] = panel.area;
    let capital = Font::of(Weight::Regular).capital();
    let text = |lines, tick: &Tick, at| Text::new(lines, &tick.label, at, NUMBER);
    let shown = |ticks: &'_ [Tick]| {
        ticks
            .iter()
            .filter(|tick| !tick.label.is_empty())
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut texts = Vec::new();
    if along {
        let line = top + height + TICK_LENGTH + NUMBER_GAP + NUMBER * capital;
        texts.extend(shown(&panel.x_ticks).iter().map(|tick| {
            text(below(figure, tick, width), tick, [panel.x(tick.value), line]).anchor(Anchor::Middle)
        }));
    }
    if beside {
        let edge = left - TICK_LENGTH - NUMBER_GAP;
        let line = |tick: &Tick| panel.y(tick.value) + NUMBER * capital / 2.0;
        texts.extend(
            shown(&panel.y_ticks)
                .iter()
                .map(|tick| text(vec![tick.label.clone()], tick, [edge, line(tick)]).anchor(Anchor::End)),
        );
    }
    texts
}

impl Layout {
    fn extent(&self) -> f64 {
        self.panels[0].area[2] * self.panels[0].area[3]
    }

    /// Puts everything into the middle of a larger paper.
    fn center(&mut self, size: [f64; 2]) {
        let shift = [0, 1].map(|side| (size[side] - self.size[side]) / 2.0);
        for panel in &mut self.panels {
            panel.area[0] += shift[0];
            panel.area[1] += shift[1];
        }
        let texts = self.texts.iter_mut().map(|text| &mut text.at);
        for at in texts.chain(self.legend.places()) {
            at[0] += shift[0];
            at[1] += shift[1];
        }
        self.size = size;
    }
}
