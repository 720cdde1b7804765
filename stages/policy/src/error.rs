use provenir_table::TableError;

/// Why something is not a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The table that should hold it is not one of tensors.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file that should hold it is not one of safetensors, or not of a policy's.
    #[error("not a policy as safetensors: {0}")]
    Safetensors(String),
    /// Its parts do not make a policy.
    #[error("not a policy: {0}")]
    Invalid(String),
}

impl PolicyError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}
