//! A manifest expanded over its axes: the graph of cells that a run works through.

mod model;

pub use model::{Cell, CellIndex, Input, Plan, Publish, Stage};
