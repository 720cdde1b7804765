//! What an execution sees, and the process it runs in.
//!
//! * [`Execution`]: tables in, tables out; [`StoredInput`]s where it asks for files. It knows nothing of the cache, of keys or of other cells.
//! * [`Inputs`], [`Outputs`], [`Context`], [`Failure`]: what it is given and what it gives back.
//! * [`Coded`], [`encode`], [`decode`]: a state as the bytes of a checkpoint, and back.
//! * [`serve`]: the loop of a worker process, which verifies what it reads and hashes what it writes.
//!
//! Invariant: clocks are read here and nowhere in an execution; an elapsed time may only reach a volatile output.

mod any;
mod coded;
mod context;
mod failure;
mod inputs;
mod outputs;
mod worker;

pub use any::{AnyExecution, Cell, Execution, erase};
pub use coded::{Coded, decode, encode};
pub use context::{Context, Reporter};
pub use failure::Failure;
pub use inputs::{Input, Inputs, StoredInput};
pub use outputs::Outputs;
pub use worker::serve;
