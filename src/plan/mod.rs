//! Plans: manifests expanded over their axes to the graph of cells that a run works through.
//!
//! * `model`: [`Plan`], its stages and cells.
//! * `key`: what identifies an action.
//! * `graph`, `wires`: what the names in a manifest refer to, and the order of the stages.
//! * `flow`, `axes`: which axes each stage varies over, and which cells are excluded.
//! * `template`, `parameters`, `sources`: parameters at each point of the axes they name, and the files they name.
//! * `schemas`, `facts`: the columns that arrive at each port, and what else is known of what arrives.
//! * `layout`, `links`, `expand`: cells and what they take.
//! * `privilege`: what no learner may see does not reach one.
//! * `publish`: named copies of outputs.
//! * `part`: the plan of some of its cells.
//! * `single`: the plan of a command that needs one thing made.

#![expect(
    clippy::similar_names,
    reason = "an axis among axes, and what a producer produced, are the words of this field"
)]

mod axes;
mod expand;
mod facts;
mod flow;
mod graph;
mod key;
mod layout;
mod links;
mod model;
mod parameters;
mod part;
mod privilege;
mod publish;
mod schemas;
mod single;
mod sources;
mod template;
mod wires;

pub use key::{Action, ActionInput, DOMAIN};
pub use model::{Attempts, Cell, CellIndex, Input, Plan, Publish, Stage, StageInput};

pub(crate) use expand::expand;
pub(crate) use single::Single;
pub use sources::RememberedSources;
pub(crate) use sources::{cause, neighbour, normal};
