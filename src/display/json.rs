use std::io::Write;

use crate::exec::Event;

/// Events on standard output, one JSON object a line.
pub(super) struct Json {
    output: std::io::Stdout,
}

impl Json {
    pub(super) fn new() -> Self {
        Self {
            output: std::io::stdout(),
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        let mut output = self.output.lock();
        // A reader that went away is no reason to stop computing: what is committed stays.
        let _ = output.write_all(&line).and_then(|()| output.flush());
    }
}
