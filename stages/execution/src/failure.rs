use std::{fmt, io};

use provenir_api::Digest;
use provenir_api::protocol::{Blame, Failed};
use provenir_table::TableError;

/// Why a cell could not be executed: what happened, whose fault it is, and what to do next.
#[derive(Clone, Debug)]
pub struct Failure {
    blame: Blame,
    message: String,
    help: Option<String>,
    damaged: Option<Digest>,
}

impl Failure {
    /// The computation cannot succeed with what it was given.
    pub fn stage(message: impl Into<String>) -> Self {
        Self::new(Blame::Stage, message)
    }

    /// Store, disk or device failed.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Blame::Environment, message)
    }

    /// A bug of ours.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Blame::Us, message)
    }

    /// It was asked to stop.
    pub fn cancelled() -> Self {
        Self::new(Blame::Cancelled, "cancelled")
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        self.blame
    }

    /// What kept an input from being read: where it is damaged, or is not there, the command is told of the object.
    pub(crate) fn of_input(error: TableError, object: Digest) -> Self {
        let is_gone =
            matches!(&error, TableError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
        let failure = Self::from(error);
        Self {
            damaged: failure.damaged.or(is_gone.then_some(object)),
            ..failure
        }
    }

    fn new(blame: Blame, message: impl Into<String>) -> Self {
        Self {
            blame,
            message: message.into(),
            help: None,
            damaged: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        let message = error.to_string();
        match error {
            TableError::Damaged { expected, .. } => Self {
                damaged: Some(expected),
                ..Self::environment(message)
            },
            TableError::Io { .. } => Self::environment(message),
            _ => Self::stage(message),
        }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        let Failure {
            blame,
            message,
            help,
            damaged,
        } = failure;
        Self {
            blame,
            message,
            help,
            damaged,
        }
    }
}
