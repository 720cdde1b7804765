//! The process that executes cells. It is started by `provenir`, speaks its protocol on standard input and output, and
//! is the only place that names all executions.

mod platform;

use std::process::ExitCode;

use provenir_build_id::BUILD;
use provenir_execution::{AnyExecution, erase, serve};

fn main() -> ExitCode {
    let executions: [Box<dyn AnyExecution>; 11] = [
        erase(provenir_expert::ExpertExecution),
        erase(provenir_collect::CollectExecution),
        erase(provenir_corrupt::CorruptExecution),
        erase(provenir_split::SplitExecution),
        erase(provenir_train::TrainExecution),
        erase(provenir_diagnose::DiagnoseExecution),
        erase(provenir_evaluate::EvaluateExecution),
        erase(provenir_time_to_target::TimeToTargetExecution),
        erase(provenir_plot::PlotExecution),
        erase(provenir_render::RenderExecution),
        erase(provenir_command::CommandExecution),
    ];
    serve(
        &executions,
        BUILD,
        platform::is_accelerated(),
        platform::describe(),
    )
}
