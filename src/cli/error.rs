use std::io;
use std::process::ExitCode;

use provenir_api::protocol::Blame;

use crate::exec::{INTERRUPTED, Summary, WorkerError};
use crate::manifest::Diagnostics;
use crate::store::StoreError;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    StageFailed,
    Request,
    Environment,
    Bug,
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::StageFailed => 1,
            Exit::Request => 2,
            Exit::Environment => 3,
            Exit::Bug => 4,
            Exit::Interrupted => INTERRUPTED as u8,
        })
    }
}

impl Exit {
    /// How a run ends the command.
    pub(super) fn of(summary: &Summary) -> Self {
        if summary.interrupted {
            return Self::Interrupted;
        }
        match summary.blame {
            None => Self::Done,
            Some(Blame::Stage | Blame::Cancelled) => Self::StageFailed,
            Some(Blame::Environment) => Self::Environment,
            Some(Blame::Us) => Self::Bug,
        }
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The manifest is wrong.
    #[error("{0}")]
    Manifest(Box<Diagnostics>),
    /// The request is wrong.
    #[error("{message}")]
    Request { message: String, help: Option<String> },
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The worker is of no use.
    #[error("{0}")]
    Worker(#[from] WorkerError),
    /// Something else outside the command failed.
    #[error("{message}")]
    Environment { message: String, help: Option<String> },
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    pub(super) fn request(message: impl Into<String>) -> Self {
        Self::Request {
            message: message.into(),
            help: None,
        }
    }

    #[must_use]
    pub(super) fn help(mut self, text: impl Into<String>) -> Self {
        if let Self::Request { help, .. } | Self::Environment { help, .. } = &mut self {
            *help = Some(text.into());
        }
        self
    }

    /// What to do next, where that is known.
    pub(super) fn advice(&self) -> Option<&str> {
        match self {
            Self::Request { help, .. } | Self::Environment { help, .. } => help.as_deref(),
            Self::Store(error) => error.help(),
            Self::Worker(error) => Some(error.help()),
            Self::Manifest(_) | Self::Output(_) => None,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Manifest(_) | Self::Request { .. } | Self::Store(StoreError::NotAStore { .. }) => {
                Exit::Request
            }
            Self::Store(StoreError::Outputs(_)) => Exit::Bug,
            // Whoever reads has enough, as `head` has: nothing went wrong.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Store(_) | Self::Worker(_) | Self::Environment { .. } | Self::Output(_) => {
                Exit::Environment
            }
        }
    }
}
