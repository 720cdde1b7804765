//! What reaches the person: data on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use super::environment;
use super::error::{CommandError, Exit};
use crate::manifest::Diagnostics;

/// Prints data.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Says something that is not data. Where standard error cannot be written to there is nobody to tell.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Tells why a command could not do what it was asked, and gives its exit.
pub(super) fn explain(error: &CommandError) -> Exit {
    let exit = error.exit();
    if exit == Exit::Done {
        return exit;
    }
    if let CommandError::Manifest(diagnostics) = error {
        show(diagnostics);
        let count = diagnostics
            .entries()
            .filter(|entry| entry.severity == crate::manifest::Severity::Error)
            .count();
        let plural = if count == 1 { "" } else { "s" };
        say(&format!(
            "error: {count} problem{plural} in the manifest; nothing was run"
        ));
        return exit;
    }
    say(&format!("error: {error}"));
    if let Some(advice) = error.advice() {
        say(&format!("  help: {advice}"));
    }
    exit
}

/// Shows diagnostics with their places in the manifest.
pub(super) fn show(diagnostics: &Diagnostics) {
    let colour = io::stderr().is_terminal() && !environment::is_set("NO_COLOR");
    say(diagnostics.render(width(), colour).trim_end());
}

/// Columns of the terminal on standard error; a readable width where it is none.
fn width() -> usize {
    const DEFAULT: usize = 100;
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col >= 40 => usize::from(size.ws_col).min(140),
        _ => DEFAULT,
    }
}
