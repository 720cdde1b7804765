//! Manifests: TOML files that declare pipelines.
//!
//! [`load`] reads one and expands it to a [`Plan`](crate::plan::Plan), or says everything that is wrong with it, each
//! with its place. The stations on the way, a module each:
//!
//! * `source`: the texts, and places in them; an option of the command line is a text like a file.
//! * `node`, `syntax`: TOML values that know their place; what is said of a text that is not TOML.
//! * `load`: files, `extends`.
//! * `layers`, `options`: a profile, `--set` and `--axis` laid over the manifest, as TOML over TOML, so that what is recorded with
//!   a run is again a manifest.
//! * `read`, `inputs`, `limits`, `expect`: the merged TOML becomes a `model::Manifest`: known keys, right types.
//! * `alike`: texts that people cannot tell apart.
//! * `diagnostic`, `render`: what is wrong, for programs and for people.
//! * `language`: the JSON Schema of manifests.
//!
//! Invariant: a manifest is hostile until it was read. Sizes, depths and counts are bounded, and no message shows a
//! control character.

mod alike;
mod diagnostic;
mod expect;
mod inputs;
mod language;
mod layers;
mod limits;
mod load;
mod model;
mod node;
mod options;
mod read;
mod render;
mod source;
mod syntax;

pub use diagnostic::{Diagnostics, Entry, Severity};
pub use language::language_schema;
pub use layers::Overrides;
pub use load::{FORMAT, SIZE_LIMIT, load, load_remembering};

pub(crate) use alike::{alike, apart};
pub(crate) use diagnostic::{Report, shortened};
pub(crate) use expect::{belongs, is_name};
pub(crate) use load::{Read, located};
pub(crate) use model::{
    Axis, AxisValue, InputDecl, InputItem, Manifest, Override, PublishDecl, Selector, Spanned, StageDecl,
};
pub(crate) use node::{Data, Node, clip, quoted};
pub(crate) use read::{STAGE_KEY, report_alike};
pub(crate) use render::visible;
pub(crate) use source::{Origin, Span};
