//! Execution of the `plot` kind: tables in, a figure and the data behind it out.
//!
//! Rows to numbers: `columns` (what arrives, as one table), `filter`, `summary` (points) and `references` (lines), with
//! `statistics`; `data` is the result as a table. Numbers to a picture: `compose` (names, order, styles) makes a
//! [`Figure`], `layout` gives everything its place on paper, `marks` is what is drawn there in order; `svg`, `pdf` and
//! [`to_png`] draw it.
//!
//! Invariant: the bytes of a figure depend on its parameters and its data alone, on every platform. Text is drawn from
//! the bundled font, powers and logarithms come from `libm`, and no arc or trigonometric function is used.

mod columns;
mod compose;
mod data;
mod execution;
mod figure;
mod filter;
mod layout;
mod legend;
mod marks;
mod path;
mod pdf;
mod png;
mod references;
mod span;
mod statistics;
mod style;
mod summary;
mod svg;
mod text;
mod ticks;
mod wording;

pub use execution::PlotExecution;
pub use figure::{Axis, Curve, Figure, FigureError, Line, Panel, Point, Series};
pub use png::to_png;
