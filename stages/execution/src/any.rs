use provenir_api::Kind;
use provenir_api::port::OutputPort;
use serde::Deserialize;
use serde_json::Value;

use crate::{Context, Failure, Inputs, Outputs};

/// What a kind does: tables in, tables out.
pub trait Execution: Send + Sync + 'static {
    /// Its declaration.
    type Kind: Kind;

    /// Executes a cell. What it returns depends on parameters and inputs alone, except at volatile ports.
    fn execute(
        &self,
        parameters: &<Self::Kind as Kind>::Parameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure>;
}

/// An [`Execution`] behind a pointer.
pub trait AnyExecution: Send + Sync {
    /// The name of its kind.
    fn kind(&self) -> &'static str;
    /// The output ports of its kind.
    fn outputs(&self) -> Vec<OutputPort>;
    /// [`Execution::execute`] with parameters that the command has checked.
    fn execute(&self, parameters: &Value, inputs: &Inputs, context: &Context<'_>)
    -> Result<Outputs, Failure>;
}

/// Puts an execution behind a pointer.
pub fn erase<E: Execution>(execution: E) -> Box<dyn AnyExecution> {
    Box::new(Erased(execution))
}

struct Erased<E>(E);

impl<E: Execution> AnyExecution for Erased<E> {
    fn kind(&self) -> &'static str {
        E::Kind::NAME
    }

    fn outputs(&self) -> Vec<OutputPort> {
        E::Kind::outputs()
    }

    fn execute(
        &self,
        parameters: &Value,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let parameters = <E::Kind as Kind>::Parameters::deserialize(parameters).map_err(|error| {
            Failure::bug(format!(
                "parameters that passed the command's checks do not fit: {error}"
            ))
        })?;
        self.0.execute(&parameters, inputs, context)
    }
}
