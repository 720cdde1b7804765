use std::io::{self, ErrorKind, Write};

use crate::exec::Event;

/// Events on standard output, one JSON object a line.
pub(super) struct Json {
    output: io::Stdout,
    /// Why events could not be written. Nothing is written after that: what is there is whole up to one place.
    failed: Option<io::Error>,
}

impl Json {
    pub(super) fn new() -> Self {
        Self {
            output: io::stdout(),
            failed: None,
        }
    }

    /// Never stops the run, whose results count: whoever began it asks afterwards what could not be written.
    pub(super) fn on(&mut self, event: &Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.write(event) {
            self.failed = Some(error);
        }
    }

    fn write(&self, event: &Event<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut output = self.output.lock();
        output.write_all(&line)?;
        output.flush()
    }

    /// Why events could not be written. A reader that went away has enough, as `head` has: nothing went wrong.
    pub(super) fn failure(&mut self) -> Option<io::Error> {
        self.failed
            .take()
            .filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}
