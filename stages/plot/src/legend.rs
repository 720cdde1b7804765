//! The legend: one for all panels, below them, in as many rows as it needs.

use std::ops::Range;

use provenir_drawing::font::{Font, Weight, wrap};

use crate::figure::Figure;
use crate::layout::LEADING;
use crate::text::Text;

const SIZE: f64 = 8.5;
/// Length of the piece of line that is shown.
pub(crate) const SAMPLE: f64 = 24.0;
const SAMPLE_GAP: f64 = 4.5;
const ENTRY_GAP: f64 = 15.0;
const ROW_GAP: f64 = 3.0;
const LINES: usize = 3;

/// The legend on paper.
#[derive(Clone, Debug, Default)]
pub(crate) struct Legend {
    pub(crate) entries: Vec<Entry>,
    pub(crate) height: f64,
    /// Where its widest row ends.
    pub(crate) right: f64,
}

/// What an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Series(usize),
    Reference(usize),
}

/// A piece of line and its name.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The left end of the piece of line.
    pub(crate) at: [f64; 2],
    pub(crate) text: Text,
}

impl Legend {
    /// Every place in it, to be moved.
    pub(crate) fn places(&mut self) -> impl Iterator<Item = &mut [f64; 2]> {
        self.entries
            .iter_mut()
            .flat_map(|entry| [&mut entry.at, &mut entry.text.at])
    }
}

/// Puts the entries into rows no wider than `width`, below and right of `corner`, each row as near to `center` as fits.
pub(crate) fn arrange(figure: &Figure, corner: [f64; 2], width: f64, center: f64) -> Legend {
    let series = figure
        .series
        .iter()
        .enumerate()
        .map(|(index, series)| (Key::Series(index), &series.label));
    let references = figure
        .references
        .iter()
        .enumerate()
        .map(|(index, label)| (Key::Reference(index), label));
    let font = Font::of(Weight::Regular);
    let before_text = SAMPLE + SAMPLE_GAP;
    let named = series.chain(references).filter(|(_, label)| !label.is_empty());
    let mut items: Vec<Item> = named
        .map(|(key, label)| {
            let lines = wrap(
                label,
                Weight::Regular,
                SIZE,
                (width - before_text).max(SAMPLE),
                LINES,
            );
            let widest = lines
                .iter()
                .map(|line| font.width(line, SIZE))
                .fold(0.0, f64::max);
            Item {
                key,
                label,
                lines,
                wide: before_text + widest,
            }
        })
        .collect();
    let flowing = flow(&items, width);
    // In several rows, entries of one width stand in columns, where that takes hardly more rows.
    let widest = items.iter().map(|item| item.wide).fold(0.0, f64::max);
    let aligned: Vec<Item> = items
        .iter()
        .map(|item| Item {
            wide: widest,
            ..item.clone()
        })
        .collect();
    let columns = flow(&aligned, width);
    let in_columns = flowing.len() > 1 && columns.len() <= flowing.len() + 1;
    let rows = if in_columns {
        items = aligned;
        columns
    } else {
        flowing
    };
    let mut legend = Legend::default();
    let mut top = corner[1];
    let longest = rows
        .iter()
        .map(|row| extent(&items[row.clone()]))
        .fold(0.0, f64::max);
    for row in rows {
        let row = &items[row];
        let tallest = row.iter().map(|item| item.lines.len()).max().unwrap_or(1) as f64;
        let height = tallest * SIZE * LEADING + ROW_GAP;
        let used = if in_columns { longest } else { extent(row) };
        let mut x = (center - used / 2.0).min(corner[0] + width - used).max(corner[0]);
        for item in row {
            let middle = top + height / 2.0;
            let below = (item.lines.len().max(1) - 1) as f64 * SIZE * LEADING / 2.0;
            let line = middle + SIZE * font.capital() / 2.0 - below;
            let text = Text::new(item.lines.clone(), item.label, [x + before_text, line], SIZE);
            legend.entries.push(Entry {
                key: item.key,
                at: [x, middle],
                text,
            });
            x += item.wide + ENTRY_GAP;
        }
        legend.right = legend.right.max(x - ENTRY_GAP);
        top += height;
    }
    legend.height = top - corner[1];
    legend
}

#[derive(Clone)]
struct Item<'a> {
    key: Key,
    label: &'a str,
    lines: Vec<String>,
    wide: f64,
}

/// How long a row of items is.
fn extent(items: &[Item<'_>]) -> f64 {
    let gaps = items.len().saturating_sub(1) as f64 * ENTRY_GAP;
    items.iter().map(|item| item.wide).sum::<f64>() + gaps
}

/// Breaks items into rows no longer than `width`, or of a single item.
fn flow(items: &[Item<'_>], width: f64) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    for index in 0..items.len() {
        match rows.last_mut() {
            Some(row) if extent(&items[row.start..=index]) <= width => row.end = index + 1,
            _ => rows.push(index..index + 1),
        }
    }
    rows
}
