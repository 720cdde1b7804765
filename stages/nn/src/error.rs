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

impl NnError {
    /// Whether memory ran out, of the device or of the machine: fewer networks at a time may fit.
    pub fn is_out_of_memory(&self) -> bool {
        /// What LibTorch's allocators and cuBLAS say; there is no type for it in C++ that the bindings keep.
        const SAID: [&str; 4] = [
            "out of memory",
            "can't allocate memory",
            "not enough memory",
            "STATUS_ALLOC_FAILED",
        ];
        matches!(self, Self::Torch(_) | Self::Graph(_)) && {
            let message = self.to_string();
            SAID.iter().any(|said| message.contains(said))
        }
    }
}

/// LibTorch puts a C++ stack trace below its message.
fn first_line(error: &TchError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;

    #[test]
    fn memory_that_runs_out_is_told_from_other_failures() {
        // More than there is addressable.
        let error = Tensor::f_zeros([1 << 60], (Kind::Uint8, Device::Cpu)).unwrap_err();
        let error = NnError::from(error);
        assert!(error.is_out_of_memory(), "{error}");
        let error = Tensor::from_slice(&[1.0_f32]).f_view([7]).unwrap_err();
        assert!(!NnError::from(error).is_out_of_memory());
        assert!(!NnError::Device("no memory of a GPU: not enough memory".to_owned()).is_out_of_memory());
    }
}
