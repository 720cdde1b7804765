use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use provenir_api::protocol::{Level, Progress};
use provenir_table::FILE_LIMIT;

use crate::Failure;

/// Where an execution's progress and log lines go.
pub trait Reporter: Send + Sync {
    /// Takes a progress report.
    fn progress(&self, progress: Progress);
    /// Takes a log line.
    fn log(&self, level: Level, message: &str);
}

/// What an execution may know of its surroundings.
pub struct Context<'a> {
    reporter: &'a dyn Reporter,
    cancelled: &'a AtomicBool,
    partial: Utf8PathBuf,
    sources: BTreeMap<String, (Utf8PathBuf, Digest)>,
    action_key: String,
    cores: usize,
    scratch: Option<Utf8PathBuf>,
    owns_children: bool,
    started: Instant,
    last_progress: Mutex<Option<Instant>>,
}

/// Progress reports that come faster than this are dropped, except the last one.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

impl<'a> Context<'a> {
    /// A context whose checkpoints live in `partial`, a folder that need not exist yet.
    pub fn new(
        reporter: &'a dyn Reporter,
        cancelled: &'a AtomicBool,
        partial: impl Into<Utf8PathBuf>,
    ) -> Self {
        Self {
            reporter,
            cancelled,
            partial: partial.into(),
            sources: BTreeMap::new(),
            action_key: String::new(),
            cores: 1,
            scratch: None,
            owns_children: false,
            started: now(),
            last_progress: Mutex::new(None),
        }
    }

    /// The same, with the cell's action key.
    #[must_use]
    pub fn with_action_key(mut self, key: impl Into<String>) -> Self {
        self.action_key = key.into();
        self
    }

    /// The same, with so many cores to keep busy, at least 1.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.cores = cores.max(1);
        self
    }

    /// The same, with a folder of the cell's own, which is there.
    #[must_use]
    pub fn with_scratch(mut self, folder: impl Into<Utf8PathBuf>) -> Self {
        self.scratch = Some(folder.into());
        self
    }

    /// The same, for a process that has no children but those that the cell starts, and adopts what they leave behind.
    #[must_use]
    pub(crate) fn with_children(mut self) -> Self {
        self.owns_children = true;
        self
    }

    /// The same, with a source file for the parameter at a JSON pointer.
    #[must_use]
    pub fn with_source(
        mut self,
        pointer: impl Into<String>,
        path: impl Into<Utf8PathBuf>,
        digest: Digest,
    ) -> Self {
        self.sources.insert(pointer.into(), (path.into(), digest));
        self
    }

    /// The cell's action key, as text for people and figures.
    pub fn action_key(&self) -> &str {
        &self.action_key
    }

    /// How many cores the cell may keep busy: 1 unless it was given more. Nothing that it gives may depend on them.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// A folder of the cell's own on the store's file system: it is there, and goes when the cell is over. Names with an
    /// extension are taken, by outputs.
    pub fn scratch(&self) -> Result<&Utf8Path, Failure> {
        self.scratch
            .as_deref()
            .ok_or_else(|| Failure::bug("the cell has no scratch folder"))
    }

    /// Ends every process that the cell started and that is still there, with all that those started. Nobody waits for any
    /// of them. Outside a worker, where others may have started processes, nothing is ended.
    pub fn end_processes(&self) {
        if self.owns_children {
            provenir_processes::end_own();
        }
    }

    /// The bytes of the source file named by the parameter at a JSON pointer (`/expert`), verified against the digest
    /// that entered the action key.
    pub fn source(&self, pointer: &str) -> Result<Vec<u8>, Failure> {
        let (path, expected) = self
            .sources
            .get(pointer)
            .ok_or_else(|| Failure::bug(format!("the parameter at `{pointer}` names no source file")))?;
        let unreadable =
            |error: std::io::Error| Failure::environment(format!("cannot read the source file: {error}"));
        let size = fs_err::metadata(path).map_err(unreadable)?.len();
        if size > FILE_LIMIT {
            return Err(Failure::stage(format!(
                "`{path}` holds {size} bytes; at most {FILE_LIMIT} are read"
            )));
        }
        let bytes = fs_err::read(path).map_err(unreadable)?;
        if Digest::of(&bytes) != *expected {
            return Err(
                Failure::environment(format!("`{path}` changed while the run was under way"))
                    .help("run again: the new content is then what is used and recorded"),
            );
        }
        Ok(bytes)
    }

    /// Reports how far the cell is; cheap enough to call at every step.
    pub fn progress(&self, progress: Progress) {
        let last = progress.total == Some(progress.done);
        let now = now();
        let mut previous = self
            .last_progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if last || previous.is_none_or(|previous| now - previous >= PROGRESS_INTERVAL) {
            *previous = Some(now);
            self.reporter.progress(progress);
        }
    }

    /// Writes a line to the cell's log.
    pub fn info(&self, message: impl AsRef<str>) {
        self.reporter.log(Level::Info, message.as_ref());
    }

    /// Writes a line to the cell's log and shows it to the person who waits.
    pub fn notice(&self, message: impl AsRef<str>) {
        self.reporter.log(Level::Notice, message.as_ref());
    }

    /// Writes a line to the cell's log and shows it to the person as a warning.
    pub fn warn(&self, message: impl AsRef<str>) {
        self.reporter.log(Level::Warning, message.as_ref());
    }

    /// Fails where the cell was asked to stop; to be called at least once a second.
    pub fn check_cancelled(&self) -> Result<(), Failure> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Failure::cancelled())
        } else {
            Ok(())
        }
    }

    /// Wall-clock time since the cell began: for progress, for the pace of checkpoints and for volatile outputs only.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A checkpoint that an earlier attempt at the same action left, by name.
    pub fn read_checkpoint(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match fs_err::read(self.partial.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::environment(format!("cannot read a checkpoint: {error}"))),
        }
    }

    /// Leaves a checkpoint for a later attempt at the same action; replaces one of that name at once or not at all.
    pub fn write_checkpoint(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        replace(&self.partial, name, bytes)
            .map_err(|error| Failure::environment(format!("cannot write a checkpoint: {error}")))
    }

    /// Removes a checkpoint, where there is one of that name.
    pub fn remove_checkpoint(&self, name: &str) -> Result<(), Failure> {
        match fs_err::remove_file(self.partial.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::environment(format!(
                "cannot remove a checkpoint: {error}"
            ))),
            _ => Ok(()),
        }
    }
}

fn replace(folder: &Utf8Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;

    fs_err::create_dir_all(folder)?;
    let unfinished = folder.join(format!("{name}.unfinished"));
    let mut file = fs_err::File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs_err::rename(&unfinished, folder.join(name))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the stages that reads a clock: see `elapsed`"
)]
fn now() -> Instant {
    Instant::now()
}
