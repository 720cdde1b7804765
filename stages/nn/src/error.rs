use provenir_policy::PolicyError;
use tch::TchError;
use thiserror::Error;

/// What can go wrong while networks are trained.
#[derive(Debug, Error)]
pub enum NnError {
    /// LibTorch refused an operation, or ran out of memory.
    #[error("LibTorch: {}", first_line(.0))]
    Torch(#[from] TchError),
    /// A step could not be recorded for a GPU, or not be repeated.
    #[error("CUDA graph: {0}")]
    Graph(String),
    /// Saved values do not fit the networks they are meant for.
    #[error("{what}: {expected} values are needed, {found} were given")]
    Length {
        /// What they are values of.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// What was learnt is no policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The device that was asked for cannot be used.
    #[error("device `cuda`: {0}")]
    Device(String),
}

/// LibTorch puts a C++ stack trace below its message.
fn first_line(error: &TchError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
