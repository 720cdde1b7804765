/// Why a pickle was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickleError {
    /// It imports a name that is not on the list.
    #[error(
        "this pickle asks for `{0}`, which is not on the list of what a Stable-Baselines3 file may contain; \
         it was not run"
    )]
    Forbidden(String),
    /// It ends too early.
    #[error("the pickle is cut short: it ends at byte {0}, in the middle of something")]
    Truncated(usize),
    /// It holds an instruction that these files never use.
    #[error("byte {at} of the pickle: instruction {code:#04x} does not occur in a Stable-Baselines3 file")]
    Instruction {
        /// Offset.
        at: usize,
        /// The instruction.
        code: u8,
    },
    /// Its instructions do not fit together.
    #[error("byte {at} of the pickle: {what}")]
    Malformed {
        /// Offset.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// It is larger than any agent's.
    #[error("the pickle has more than {limit} {what}")]
    TooLarge {
        /// How many are read.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
}
