//! Execution of the `render` kind: a policy in, an episode as an animation out.
//!
//! `episode` rolls the policy out and keeps where its robot was. `film` decides what moment each frame shows, and
//! `camera` where it is looked at from. `view` makes a frame's `picture`, a list of filled outlines and words: by `side` for
//! robots that move in a plane, by `perspective` for those that do not. Two painters show pictures: `raster` as pixels, which
//! `palette` and `frames` prepare for `gif` and `apng`, and `svg`.
//!
//! Invariant: the bytes of an animation depend on the parameters and the episode alone. Text is outlines of the bundled font,
//! transcendental functions come from `libm`, and colours are chosen without chance.

mod apng;
mod camera;
mod episode;
mod execution;
mod film;
mod frames;
mod gif;
mod outline;
mod palette;
mod perspective;
mod picture;
mod raster;
mod side;
mod style;
mod svg;
mod vector;
mod view;

pub use execution::RenderExecution;
