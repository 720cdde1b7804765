//! Counter-based random streams: what a stream draws depends on its seed and its name alone, on every platform.
//!
//! * [`Stream`]: a named sequence of 2^64 draws of 64 bits with random access; children by name and index.
//! * [`Stream::f64`], [`Stream::uniform`], [`Stream::below`], [`Stream::normal`]: distributions.
//! * [`Stream::shuffle`], [`Stream::permutation`], [`Stream::choose`]: order and choice.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011); stream identities come from BLAKE3. No draw depends on the C library, on threads or on a clock.
//!
//! Invariant: a seed, a name and a position give the same bits in every version. Whoever changes that raises the
//! revisions of the kinds that draw.
//!
//! ```
//! use provenir_random::Stream;
//!
//! let mut stream = Stream::new(7, "shuffle").child("epoch", 3);
//! let order = stream.permutation(100);
//! let saved = stream.position();
//! let next = stream.u64();
//! stream.seek(saved);
//! assert_eq!(stream.u64(), next);
//! # assert_eq!(order.len(), 100);
//! ```

mod choice;
mod distributions;
mod philox;
mod stream;

pub use stream::Stream;
