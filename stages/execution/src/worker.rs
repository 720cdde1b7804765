use std::any::Any;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use camino::Utf8Path;
use provenir_api::Digest;
use provenir_api::port::OutputPort;
use provenir_api::protocol::{Done, Execute, FromWorker, Hello, Level, Log, PROTOCOL, Progress, ToWorker};
use provenir_table::{Table, TableError};

use crate::{AnyExecution, Cell, Context, Failure, Input, Inputs, Outputs, Reporter, StoredInput};

/// Longest line that a worker accepts on its standard input.
const LINE_LIMIT: u64 = 64 << 20;

/// Serves cells until standard input closes. `platform` describes what results may depend on beside their action:
/// processor, device, library versions; `accelerated` whether computations go to an accelerator where cells leave that
/// open.
pub fn serve(
    executions: &[Box<dyn AnyExecution>],
    build: &str,
    accelerated: bool,
    platform: BTreeMap<String, String>,
) -> ExitCode {
    if let Err(error) = provenir_processes::adopt_orphans() {
        return report(&format!("cannot take charge of what cells start: {error}"));
    }
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
        accelerated,
        platform,
    }));
    let cancelled = Arc::new(AtomicBool::new(false));
    let (sender, groups) = mpsc::channel();
    let listener_cancelled = Arc::clone(&cancelled);
    thread::spawn(move || listen(&sender, &listener_cancelled));
    for cells in groups {
        execute(executions, &cells, &channel, &cancelled);
        // What a cell started does not outlive it.
        provenir_processes::end_own();
        cancelled.store(false, Ordering::Relaxed);
    }
    ExitCode::SUCCESS
}

/// Reads commands. When standard input closes, the command is gone and so is everyone who could use a result: the
/// process ends at once, in the middle of whatever it computes.
fn listen(groups: &mpsc::Sender<Vec<Execute>>, cancelled: &AtomicBool) {
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
            Ok(ToWorker::Execute(cells)) => {
                if groups.send(cells).is_err() {
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

/// Executes cells of one group; each is answered.
fn execute(
    executions: &[Box<dyn AnyExecution>],
    cells: &[Execute],
    channel: &Channel,
    cancelled: &AtomicBool,
) {
    let reporters: Vec<CellReporter<'_>> = (0..cells.len())
        .map(|cell| CellReporter::new(channel, cell))
        .collect();
    let mut prepared = Vec::with_capacity(cells.len());
    let Some(kind) = cells.first().map(|cell| &cell.kind) else {
        return;
    };
    let Some(execution) = executions.iter().find(|execution| execution.kind() == kind) else {
        for reporter in &reporters {
            let message = format!("this worker executes no `{kind}` stages");
            reporter.answer(Err(Failure::bug(message)));
        }
        return;
    };
    let mut tables = Tables::default();
    for (cell, reporter) in cells.iter().zip(&reporters) {
        match prepare(cell, execution.takes_files(), &mut tables, reporter, cancelled) {
            Ok(inputs_and_context) => prepared.push(inputs_and_context),
            Err(failure) => reporter.answer(Err(failure)),
        }
    }
    let attempt = |prepared: &[Prepared<'_>]| -> std::thread::Result<()> {
        catch_unwind(AssertUnwindSafe(|| {
            let cells: Vec<_> = prepared.iter().map(Prepared::as_cell).collect();
            let results = execution.execute(&cells);
            for (cell, result) in prepared.iter().zip(results) {
                cell.finish(result, &execution.outputs(&cell.cell.parameters));
            }
        }))
    };
    let Err(panic) = attempt(&prepared) else {
        return;
    };
    let blame = |cell: &Prepared<'_>, panic: Box<dyn Any + Send>| {
        let message = format!("the `{kind}` stage panicked: {}", panic_message(panic.as_ref()));
        cell.reporter.answer(Err(
            Failure::bug(message).help("this is a bug of Provenir; its log holds the place")
        ));
    };
    if let [alone] = prepared.as_slice() {
        blame(alone, panic);
        return;
    }
    // One of them, and which one is not known.
    for cell in prepared.iter().filter(|cell| !cell.reporter.has_answered()) {
        cell.context.warn(format!(
            "one of the {} cells that were executed together panicked: each of them is executed again, alone",
            prepared.len()
        ));
        if let Err(panic) = attempt(std::slice::from_ref(cell)) {
            blame(cell, panic);
        }
    }
}

/// A cell that is ready to be executed.
struct Prepared<'a> {
    cell: &'a Execute,
    inputs: Inputs,
    context: Context<'a>,
    reporter: &'a CellReporter<'a>,
}

impl Prepared<'_> {
    fn as_cell(&self) -> Cell<'_, serde_json::Value> {
        Cell {
            parameters: &self.cell.parameters,
            inputs: &self.inputs,
            context: &self.context,
        }
    }

    /// Writes what the cell gave, and answers.
    fn finish(&self, result: Result<Outputs, Failure>, ports: &[OutputPort]) {
        self.reporter.answer(result.and_then(|outputs| {
            self.context.check_cancelled()?;
            Ok(Done {
                outputs: outputs.write(ports, &self.cell.scratch)?,
            })
        }));
    }
}

/// The tables that cells of a group are given, which often have them in common: each is read once.
#[derive(Default)]
struct Tables(BTreeMap<Digest, Table>);

impl Tables {
    /// The table with that digest, verified; read from the path where it was not read before.
    fn read(&mut self, path: &Utf8Path, object: Digest) -> Result<Table, TableError> {
        if let Some(table) = self.0.get(&object) {
            return Ok(table.clone());
        }
        let table = provenir_table::read(path, Some(object))?;
        self.0.insert(object, table.clone());
        Ok(table)
    }
}

/// Reads and verifies what a cell is given; files are left to it.
fn prepare<'a>(
    cell: &'a Execute,
    takes_files: bool,
    tables: &mut Tables,
    reporter: &'a CellReporter<'a>,
    cancelled: &'a AtomicBool,
) -> Result<Prepared<'a>, Failure> {
    let mut inputs = Inputs::new();
    for artifact in &cell.inputs {
        if takes_files {
            let stored = StoredInput {
                labels: artifact.labels.clone(),
                source: artifact.source.clone(),
                path: artifact.path.clone(),
                object: artifact.object,
                extension: artifact.extension.clone(),
            };
            inputs = inputs.with_stored(&artifact.port, stored);
            continue;
        }
        let read = tables.read(&artifact.path, artifact.object);
        let table = read.map_err(|error| Failure::of_input(error, artifact.object))?;
        inputs = inputs.with(
            &artifact.port,
            Input {
                labels: artifact.labels.clone(),
                source: artifact.source.clone(),
                table,
            },
        );
    }
    let mut context = Context::new(reporter, cancelled, cell.partial.clone())
        .with_action_key(cell.action_key.clone())
        .with_cores(cell.cores as usize)
        .with_scratch(cell.scratch.clone())
        .with_children();
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
    Ok(Prepared {
        cell,
        inputs,
        context,
        reporter,
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

/// The way to the command of one of the cells that are executed together.
struct CellReporter<'a> {
    channel: &'a Channel,
    cell: usize,
    answered: AtomicBool,
}

impl<'a> CellReporter<'a> {
    fn new(channel: &'a Channel, cell: usize) -> Self {
        Self {
            channel,
            cell,
            answered: AtomicBool::new(false),
        }
    }

    /// The last word on the cell.
    fn answer(&self, result: Result<Done, Failure>) {
        self.answered.store(true, Ordering::Relaxed);
        self.channel.send(&match result {
            Ok(done) => FromWorker::Done(self.cell, done),
            Err(failure) => FromWorker::Failed(self.cell, failure.into()),
        });
    }

    fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Reporter for CellReporter<'_> {
    fn progress(&self, progress: Progress) {
        self.channel.send(&FromWorker::Progress(self.cell, progress));
    }

    fn log(&self, level: Level, message: &str) {
        let message = message.to_owned();
        self.channel
            .send(&FromWorker::Log(self.cell, Log { level, message }));
    }
}

#[expect(clippy::exit, reason = "the process must end while another thread computes")]
fn leave(code: i32) -> ! {
    provenir_processes::end_own();
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
