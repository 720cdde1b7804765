use std::time::{Duration, SystemTime, UNIX_EPOCH};

use provenir_api::protocol::Progress;
use provenir_command::CommandExecution;
use provenir_execution::{AnyExecution, Cell, Context, Execution, Failure, Inputs, Outputs, erase};
use provenir_kinds::render::{Render, RenderParameters};
use provenir_table::TableBuilder;

use crate::declarations::{
    Chatter, ChatterParameters, Clock, ClockParameters, Crash, CrashParameters, Death, Dies, Fail,
    FailParameters, Flaky, FlakyParameters, Noop, NoopParameters, Sleep, SleepParameters, Team,
    TeamParameters,
};

/// Those of kinds of which there is one version.
pub(crate) fn executions() -> Vec<Box<dyn AnyExecution>> {
    vec![
        erase(RunNoop),
        erase(RunSleep),
        erase(RunFail),
        erase(RunCrash),
        erase(RunChatter),
        erase(RunClock),
        erase(RunFlaky),
        erase(RunTeam),
        erase(RunRender),
        erase(CommandExecution),
    ]
}

pub(crate) fn sum(inputs: &Inputs, value: f64) -> Result<Outputs, Failure> {
    let mut sum = value;
    for input in inputs.many("one").iter().chain(inputs.many("many")) {
        sum += input.table.column_f64("value")?.iter().sum::<f64>();
    }
    Ok(Outputs::new().table("sum", TableBuilder::new().f64("value", vec![sum]).build()?))
}

struct RunNoop;

impl Execution for RunNoop {
    type Kind = Noop;

    fn execute(
        &self,
        parameters: &NoopParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let length = if parameters.file.is_some() {
            context.source("/file")?.len()
        } else {
            0
        };
        sum(inputs, parameters.value + length as f64)
    }
}

struct RunTeam;

impl RunTeam {
    #[expect(clippy::panic, reason = "dying in every way is what it is for")]
    fn run(
        parameters: &TeamParameters,
        inputs: &Inputs,
        context: &Context<'_>,
        others: usize,
    ) -> Result<Outputs, Failure> {
        match parameters.dies {
            Dies::Always => std::process::abort(),
            Dies::InCompany if others > 0 => std::process::abort(),
            Dies::PanicsInCompany if others > 0 => panic!("a panic on purpose"),
            _ => {}
        }
        context.info(format!("beside {others} others"));
        while context.elapsed().as_secs_f64() < parameters.seconds {
            context.check_cancelled()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        sum(inputs, parameters.value)
    }
}

impl Execution for RunTeam {
    type Kind = Team;

    fn execute(
        &self,
        parameters: &TeamParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        Self::run(parameters, inputs, context, 0)
    }

    fn execute_together(&self, cells: &[Cell<'_, TeamParameters>]) -> Vec<Result<Outputs, Failure>> {
        cells
            .iter()
            .map(|cell| Self::run(cell.parameters, cell.inputs, cell.context, cells.len() - 1))
            .collect()
    }
}

struct RunSleep;

impl Execution for RunSleep {
    type Kind = Sleep;

    fn execute(
        &self,
        parameters: &SleepParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        context.write_checkpoint("started", b"")?;
        let whole = Duration::from_secs_f64(parameters.seconds);
        while context.elapsed() < whole {
            if !parameters.deaf {
                context.check_cancelled()?;
            }
            context.progress(Progress {
                done: context.elapsed().as_millis() as u64,
                total: Some(whole.as_millis() as u64),
                unit: "ms".to_owned(),
                metrics: [("cores".to_owned(), context.cores() as f64)].into(),
            });
            std::thread::sleep(Duration::from_millis(10).min(whole.saturating_sub(context.elapsed())));
        }
        sum(inputs, parameters.value)
    }
}

struct RunFail;

impl Execution for RunFail {
    type Kind = Fail;

    fn execute(
        &self,
        parameters: &FailParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        if !parameters.fails {
            return sum(inputs, 0.0);
        }
        context.info("about to fail");
        Err(Failure::stage(parameters.message.clone()).help("this stage exists to fail"))
    }
}

struct RunCrash;

impl Execution for RunCrash {
    type Kind = Crash;

    #[expect(
        clippy::panic,
        clippy::print_stderr,
        reason = "dying in every way is what it is for"
    )]
    fn execute(&self, parameters: &CrashParameters, _: &Inputs, _: &Context<'_>) -> Result<Outputs, Failure> {
        eprintln!("last words");
        match parameters.how {
            Death::Panic => panic!("a panic on purpose"),
            Death::Abort => std::process::abort(),
            Death::Exit => std::process::exit(7),
        }
    }
}

struct RunChatter;

impl Execution for RunChatter {
    type Kind = Chatter;

    #[expect(
        clippy::print_stdout,
        clippy::print_stderr,
        reason = "libraries print; the protocol must survive it"
    )]
    fn execute(
        &self,
        parameters: &ChatterParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        println!("on standard output: {}", parameters.text);
        eprintln!("on standard error: {}", parameters.text);
        context.info(format!("in the log: {}", parameters.text));
        context.warn(format!("as a warning: {}", parameters.text));
        sum(inputs, 0.0)
    }
}

struct RunClock;

impl Execution for RunClock {
    type Kind = Clock;

    fn execute(&self, _: &ClockParameters, inputs: &Inputs, _: &Context<'_>) -> Result<Outputs, Failure> {
        // Microseconds of today: two executions have a process's start, or a cell's commit, between them.
        #[expect(clippy::disallowed_methods, reason = "the time is what it is asked for")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(|error| Failure::bug(error.to_string()))?;
        sum(inputs, now.as_secs_f64())
    }
}

struct RunFlaky;

impl Execution for RunFlaky {
    type Kind = Flaky;

    fn execute(
        &self,
        parameters: &FlakyParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        // A byte for each attempt that failed.
        let mut failed = context.read_checkpoint("failed")?.unwrap_or_default();
        if failed.len() < parameters.failures as usize {
            failed.push(b'x');
            context.write_checkpoint("failed", &failed)?;
            context.info(format!("attempt {} fails", failed.len()));
            return Err(Failure::stage("not yet"));
        }
        sum(inputs, failed.len() as f64)
    }
}

/// Writes down what it was asked to draw: the real execution needs Bullet.
struct RunRender;

impl Execution for RunRender {
    type Kind = Render;

    fn execute(
        &self,
        parameters: &RenderParameters,
        _: &Inputs,
        _: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let asked = serde_json::to_string(parameters).map_err(|error| Failure::bug(error.to_string()))?;
        let extension = parameters.format.extension();
        let data = TableBuilder::new()
            .u32("step", vec![0])
            .f64("time", vec![0.0])
            .unit("s")
            .f64("distance", vec![0.0])
            .unit("m")
            .f64("height", vec![0.0])
            .unit("m")
            .f64("return", vec![0.0])
            .build()?;
        Ok(Outputs::new()
            .file_of(
                "animation",
                extension,
                format!("{extension} {asked}").into_bytes(),
            )
            .table("data", data))
    }
}
