use provenir_api::Kind;
use provenir_api::port::OutputPort;
use serde::Deserialize;
use serde_json::Value;

use crate::{Context, Failure, Inputs, Outputs};

/// What a kind does: tables in, tables out.
pub trait Execution: Send + Sync + 'static {
    /// Its declaration.
    type Kind: Kind;
    /// Whether it is given artifacts as they are stored ([`Inputs::stored`]), and verifies what it reads, rather than as tables.
    const TAKES_FILES: bool = false;

    /// Executes a cell. What it returns depends on parameters and inputs alone, except at volatile ports.
    fn execute(
        &self,
        parameters: &<Self::Kind as Kind>::Parameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure>;

    /// Executes cells of one group (see [`Kind::group`]); gives what each gives, in order, to the bit what
    /// [`Execution::execute`] gives of it on a processor.
    fn execute_together(
        &self,
        cells: &[Cell<'_, <Self::Kind as Kind>::Parameters>],
    ) -> Vec<Result<Outputs, Failure>> {
        cells
            .iter()
            .map(|cell| self.execute(cell.parameters, cell.inputs, cell.context))
            .collect()
    }
}

/// A cell that is executed together with others.
pub struct Cell<'a, P> {
    /// Its parameters.
    pub parameters: &'a P,
    /// What arrived at its input ports.
    pub inputs: &'a Inputs,
    /// Its surroundings: progress, log and checkpoints are its own, the clock and the request to stop are everybody's.
    pub context: &'a Context<'a>,
}

impl<P> Clone for Cell<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Cell<'_, P> {}

/// An [`Execution`] behind a pointer.
pub trait AnyExecution: Send + Sync {
    /// The name of its kind.
    fn kind(&self) -> &'static str;
    /// [`Execution::TAKES_FILES`].
    fn takes_files(&self) -> bool;
    /// The output ports of a cell with these parameters.
    fn outputs(&self, parameters: &Value) -> Vec<OutputPort>;
    /// [`Execution::execute_together`] with parameters that the command has checked.
    fn execute(&self, cells: &[Cell<'_, Value>]) -> Vec<Result<Outputs, Failure>>;
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

    fn takes_files(&self) -> bool {
        E::TAKES_FILES
    }

    fn outputs(&self, parameters: &Value) -> Vec<OutputPort> {
        E::Kind::ports(parameters, &[]).outputs
    }

    fn execute(&self, cells: &[Cell<'_, Value>]) -> Vec<Result<Outputs, Failure>> {
        let parsed: Result<Vec<_>, Failure> = cells
            .iter()
            .map(|cell| {
                <E::Kind as Kind>::Parameters::deserialize(cell.parameters).map_err(|error| {
                    Failure::bug(format!(
                        "parameters that passed the command's checks do not fit: {error}"
                    ))
                })
            })
            .collect();
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(failure) => return cells.iter().map(|_| Err(failure.clone())).collect(),
        };
        let typed: Vec<_> = cells
            .iter()
            .zip(&parsed)
            .map(|(cell, parameters)| Cell {
                parameters,
                inputs: cell.inputs,
                context: cell.context,
            })
            .collect();
        match typed.as_slice() {
            [alone] => vec![self.0.execute(alone.parameters, alone.inputs, alone.context)],
            together => self.0.execute_together(together),
        }
    }
}
