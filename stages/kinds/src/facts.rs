//! What kinds know of artifacts before they are made.

use provenir_api::{Facts, Known, Label, Need};

use crate::Environment;

/// How many rows a table has.
pub(crate) const ROWS: &str = "rows";
/// The task that demonstrations, policies and results are of.
pub(crate) const ENVIRONMENT: &str = "environment";

/// The parameter `env` says which task the outputs are of.
pub(crate) fn environment<const N: usize>(env: Environment, outputs: [&'static str; N]) -> Facts {
    let known = Known::Given(label(env), "/env");
    Facts::default().give(ENVIRONMENT, outputs, &known)
}

/// What arrives must be of the task that the parameter `env` names.
pub(crate) fn same(env: Environment) -> Need {
    Need::Equal(label(env), "/env")
}

/// A number of rows; none has more than fit.
pub(crate) fn count(rows: u64) -> Option<Label> {
    i64::try_from(rows).ok().map(Label::Integer)
}

fn label(env: Environment) -> Label {
    Label::Text(env.name().to_owned())
}
