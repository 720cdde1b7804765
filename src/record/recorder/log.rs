use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::Level;

use crate::clock;
use crate::store::append;

/// So many bytes of a log are written as they come.
const BEGINNING: u64 = 16 << 20;
/// Of what comes later so many are kept, the last.
const END: usize = 256 << 10;

/// The log of a running cell: all that it says, or, where that would fill the disk, the beginning and the end.
pub(crate) struct CellLog {
    path: Utf8PathBuf,
    /// Made with the first line.
    file: Option<fs_err::File>,
    written: u64,
    end: VecDeque<String>,
    /// Bytes of those.
    end_bytes: usize,
    left_out: u64,
}

impl CellLog {
    pub(crate) fn new(path: &Utf8Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            written: 0,
            end: VecDeque::new(),
            end_bytes: 0,
            left_out: 0,
        }
    }

    /// Adds lines, with the time.
    pub(crate) fn say(&mut self, level: Level, message: &str) -> io::Result<()> {
        let level = match level {
            Level::Info | Level::Notice => "",
            Level::Warning => "warning: ",
        };
        let time = clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut text = String::new();
        for line in message.lines() {
            let length = time.len() + level.len() + line.len() + 2;
            if self.written + length as u64 <= BEGINNING && self.end.is_empty() {
                self.written += length as u64;
                let _ = writeln!(text, "{time} {level}{line}");
            } else {
                self.hold(format!("{time} {level}{line}\n"));
            }
        }
        self.write(&text)
    }

    fn hold(&mut self, line: String) {
        self.end_bytes += line.len();
        self.end.push_back(line);
        while self.end_bytes > END && self.end.len() > 1 {
            self.end_bytes -= self.end.pop_front().map_or(0, |line| line.len());
            self.left_out += 1;
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if let Some(folder) = self.path.parent() {
                    fs_err::create_dir_all(folder)?;
                }
                none.insert(append(&self.path)?)
            }
        };
        file.write_all(text.as_bytes())
    }

    /// Writes what was held back; gives the path where there is a log.
    pub(crate) fn finish(mut self) -> io::Result<Option<Utf8PathBuf>> {
        if !self.end.is_empty() {
            let mut text = String::new();
            if self.left_out > 0 {
                let _ = writeln!(
                    text,
                    "[{} lines are left out here: of a log its first {} MiB are kept, and its last lines]",
                    self.left_out,
                    BEGINNING >> 20
                );
            }
            text.extend(self.end.drain(..));
            self.write(&text)?;
        }
        Ok(self.file.map(|_| self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_has_its_beginning_and_its_end_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("logs/a.log");
        let mut log = CellLog::new(&path);
        let lines = 500_000_u64;
        for line in 0..lines {
            log.say(Level::Info, &format!("this is line {line} of very many lines"))
                .unwrap();
        }
        assert_eq!(log.finish().unwrap(), Some(path.clone()));
        let text = fs_err::read_to_string(&path).unwrap();
        assert!((text.len() as u64) < BEGINNING + END as u64 + 200);
        let told: Vec<&str> = text.lines().collect();
        let gap = told.iter().position(|line| line.starts_with('[')).unwrap();
        assert!(told[0].ends_with("line 0 of very many lines"));
        assert!(told[gap - 1].ends_with(&format!("line {} of very many lines", gap - 1)));
        assert!(
            told.last()
                .unwrap()
                .ends_with(&format!("line {} of very many lines", lines - 1))
        );
        let left_out = lines - (told.len() as u64 - 1);
        assert!(
            told[gap].starts_with(&format!("[{left_out} lines are left out here")),
            "{}",
            told[gap]
        );
    }

    #[test]
    fn a_log_that_is_not_long_is_kept_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("logs/a.log");
        assert_eq!(CellLog::new(&path).finish().unwrap(), None);
        let mut log = CellLog::new(&path);
        log.say(Level::Warning, "one\ntwo").unwrap();
        log.finish().unwrap();
        let text = fs_err::read_to_string(&path).unwrap();
        let told: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(told, ["warning: one", "warning: two"]);
    }
}
