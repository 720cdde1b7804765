use std::any::Any;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use provenir_api::protocol::{Done, Execute, FromWorker, Hello, Level, Log, PROTOCOL, Progress, ToWorker};

use crate::{AnyExecution, Context, Failure, Input, Inputs, Reporter};

/// Longest line that a worker accepts on its standard input.
const LINE_LIMIT: u64 = 64 << 20;

/// Serves cells until standard input closes. `platform` describes what results may depend on beside their action:
/// processor, device, library versions.
pub fn serve(
    executions: &[Box<dyn AnyExecution>],
    build: &str,
    platform: BTreeMap<String, String>,
) -> ExitCode {
    let channel = match Channel::take_standard_output() {
        Ok(channel) => channel,
        Err(error) => return report(&format!("cannot set up the worker's standard output: {error}")),
    };
    channel.send(&FromWorker::Hello(Hello {
        protocol: PROTOCOL,
        build: build.to_owned(),
        kinds: executions
            .iter()
            .map(|execution| execution.kind().to_owned())
            .collect(),
        platform,
    }));
    let cancelled = Arc::new(AtomicBool::new(false));
    let (sender, cells) = mpsc::channel();
    let listener_cancelled = Arc::clone(&cancelled);
    thread::spawn(move || listen(&sender, &listener_cancelled));
    for cell in cells {
        let answer = execute(executions, &cell, &channel, &cancelled);
        channel.send(&answer);
        cancelled.store(false, Ordering::Relaxed);
    }
    ExitCode::SUCCESS
}

/// Reads commands. When standard input closes, the command is gone and so is everyone who could use a result: the
/// process ends at once, in the middle of whatever it computes.
fn listen(cells: &mpsc::Sender<Execute>, cancelled: &AtomicBool) {
    let mut input = BufReader::new(std::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        match std::io::Read::take(&mut input, LINE_LIMIT).read_until(b'\n', &mut line) {
            Ok(0) => leave(0),
            Ok(_) => {}
            Err(error) => {
                report(&format!("cannot read the next command: {error}"));
                leave(4);
            }
        }
        match serde_json::from_slice(&line) {
            Ok(ToWorker::Execute(cell)) => {
                if cells.send(*cell).is_err() {
                    leave(0);
                }
            }
            Ok(ToWorker::Cancel) => cancelled.store(true, Ordering::Relaxed),
            Err(error) => {
                report(&format!("not a command: {error}"));
                leave(4);
            }
        }
    }
}

fn execute(
    executions: &[Box<dyn AnyExecution>],
    cell: &Execute,
    channel: &Channel,
    cancelled: &AtomicBool,
) -> FromWorker {
    let attempt = catch_unwind(AssertUnwindSafe(|| attempt(executions, cell, channel, cancelled)));
    match attempt {
        Ok(Ok(done)) => FromWorker::Done(done),
        Ok(Err(failure)) => FromWorker::Failed(failure.into()),
        Err(panic) => FromWorker::Failed(
            Failure::bug(format!(
                "the `{}` stage panicked: {}",
                cell.kind,
                panic_message(panic.as_ref())
            ))
            .help("this is a bug of Provenir; its log holds the place")
            .into(),
        ),
    }
}

fn attempt(
    executions: &[Box<dyn AnyExecution>],
    cell: &Execute,
    channel: &Channel,
    cancelled: &AtomicBool,
) -> Result<Done, Failure> {
    let execution = executions
        .iter()
        .find(|execution| execution.kind() == cell.kind)
        .ok_or_else(|| Failure::bug(format!("this worker executes no `{}` stages", cell.kind)))?;
    let mut inputs = Inputs::new();
    for artifact in &cell.inputs {
        let table = provenir_table::read(&artifact.path, Some(artifact.object))?;
        inputs = inputs.with(
            &artifact.port,
            Input {
                labels: artifact.labels.clone(),
                source: artifact.source.clone(),
                table,
            },
        );
    }
    let mut context = Context::new(channel, cancelled, cell.partial.clone())
        .with_action_key(cell.action_key.clone())
        .with_cores(cell.cores as usize);
    for (pointer, digest) in &cell.sources {
        let path = cell
            .parameters
            .pointer(pointer)
            .and_then(serde_json::Value::as_str)
            .ok_or_else(|| {
                Failure::bug(format!(
                    "no parameter at `{pointer}`, where a source file was announced"
                ))
            })?;
        context = context.with_source(pointer.clone(), path, *digest);
    }
    let outputs = execution.execute(&cell.parameters, &inputs, &context)?;
    context.check_cancelled()?;
    Ok(Done {
        outputs: outputs.write(&execution.outputs(), &cell.scratch)?,
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// The worker's way to the command: the standard output it was started with, which nothing else in the process can
/// write to.
struct Channel {
    output: Mutex<std::fs::File>,
}

impl Channel {
    /// Takes standard output for messages and lets everything that libraries print there go to standard error.
    fn take_standard_output() -> std::io::Result<Self> {
        let output = rustix::io::dup(rustix::stdio::stdout())?;
        rustix::io::fcntl_setfd(&output, rustix::io::FdFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self {
            output: Mutex::new(output.into()),
        })
    }

    fn send(&self, message: &FromWorker) {
        let mut line = serde_json::to_vec(message).unwrap_or_else(|error| {
            report(&format!("cannot encode a message: {error}"));
            leave(4)
        });
        line.push(b'\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.write_all(&line).is_err() {
            // Nobody reads any more: see `listen`.
            leave(0);
        }
    }
}

impl Reporter for Channel {
    fn progress(&self, progress: Progress) {
        self.send(&FromWorker::Progress(progress));
    }

    fn log(&self, level: Level, message: &str) {
        self.send(&FromWorker::Log(Log {
            level,
            message: message.to_owned(),
        }));
    }
}

#[expect(clippy::exit, reason = "the process must end while another thread computes")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

#[expect(
    clippy::print_stderr,
    reason = "standard error is the cell's log, and there is no channel at this point"
)]
fn report(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(4)
}
