//! What reaches the person: data on standard output, everything else on standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use super::environment;
use super::error::{CommandError, Exit};
use crate::manifest::{Diagnostics, visible};

/// Prints data: on a terminal what can be shown there, and elsewhere exactly what it is.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut output = io::stdout().lock();
    output.write_all(fit(text, output.is_terminal()).as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Says something that is not data, and so without what would steer a terminal, wherever it is read. Where standard error cannot be written to there is nobody to tell.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text));
}

/// A text for a terminal or for another program. Records and artifacts may come from somebody else, and what they hold must
/// not steer a person's terminal.
fn fit(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal {
        visible(text).into()
    } else {
        text.into()
    }
}

/// Tells why a command could not do what it was asked, and gives its exit. `runs` says whether the command would have
/// executed something.
pub(super) fn explain(error: &CommandError, runs: bool) -> Exit {
    let exit = error.exit();
    if exit == Exit::Done {
        return exit;
    }
    if let CommandError::Manifest(diagnostics) = error {
        show(diagnostics);
        let nothing = if runs { "; nothing was run" } else { "" };
        say(&format!("error: {}{nothing}", counted(diagnostics)));
        return exit;
    }
    say(&format!("error: {error}"));
    if let Some(advice) = error.advice() {
        say(&format!("  help: {advice}"));
    }
    exit
}

/// How many problems there are, and where.
fn counted(diagnostics: &Diagnostics) -> String {
    if diagnostics.is_unread() {
        return "no manifest was read".to_owned();
    }
    let (manifest, options) = diagnostics.errors();
    let problems = |count: usize| format!("{count} problem{}", if count == 1 { "" } else { "s" });
    match (manifest, options) {
        (_, 0) => format!("{} in the manifest", problems(manifest)),
        (0, _) => format!("{} in the command line", problems(options)),
        _ => format!(
            "{} in the manifest, {options} in the command line",
            problems(manifest)
        ),
    }
}

/// Shows diagnostics with their places in the manifest.
pub(super) fn show(diagnostics: &Diagnostics) {
    let colour = io::stderr().is_terminal() && !environment::is_set("NO_COLOR");
    // They show no character of the manifest that would steer a terminal; what colours them does.
    let _ = writeln!(
        io::stderr().lock(),
        "{}",
        diagnostics.render(width(), colour).trim_end()
    );
}

/// Columns of the terminal on standard output; `None` where it is none, so that nothing need be cut.
pub(super) fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Columns of the terminal on standard error; a readable width where it is none.
fn width() -> usize {
    const DEFAULT: usize = 100;
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col >= 40 => usize::from(size.ws_col).min(140),
        _ => DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_is_spared_what_would_steer_it() {
        let hostile = "first[a=1]\u{1b}]0;title\u{7}\u{202e}\n";
        assert_eq!(fit(hostile, false), hostile);
        assert_eq!(fit(hostile, true), "first[a=1]?]0;title?\u{fffd}\n");
    }
}
