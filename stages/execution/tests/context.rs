//! What an execution can count on.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::Utf8PathBuf;
use provenir_api::Digest;
use provenir_api::protocol::{Blame, Level, Progress};
use provenir_execution::{Context, Reporter};

#[derive(Default)]
struct Heard {
    progress: Mutex<Vec<u64>>,
    lines: Mutex<Vec<(Level, String)>>,
}

impl Reporter for Heard {
    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress.done);
    }

    fn log(&self, level: Level, message: &str) {
        self.lines.lock().unwrap().push((level, message.to_owned()));
    }
}

fn folder(name: &str) -> Utf8PathBuf {
    let folder = Utf8PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("context")
        .join(name);
    let _ = fs_err::remove_dir_all(&folder);
    fs_err::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_checkpoint_is_found_again_and_replaced_as_a_whole() {
    let (heard, cancelled) = (Heard::default(), AtomicBool::new(false));
    let folder = folder("checkpoint");
    let context = Context::new(&heard, &cancelled, folder.join("not/there/yet"));
    assert_eq!(context.read_checkpoint("state").unwrap(), None);
    context.write_checkpoint("state", b"first").unwrap();
    context.write_checkpoint("state", b"second").unwrap();
    let later = Context::new(&heard, &cancelled, folder.join("not/there/yet"));
    assert_eq!(
        later.read_checkpoint("state").unwrap().as_deref(),
        Some(&b"second"[..])
    );
    let names: Vec<_> = fs_err::read_dir(folder.join("not/there/yet"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["state"]);
    later.remove_checkpoint("state").unwrap();
    later.remove_checkpoint("state").unwrap();
    assert_eq!(later.read_checkpoint("state").unwrap(), None);
}

#[test]
fn a_source_that_changed_since_it_was_keyed_is_refused() {
    let (heard, cancelled) = (Heard::default(), AtomicBool::new(false));
    let file = folder("source").join("expert.zip");
    fs_err::write(&file, b"as it was").unwrap();
    let context =
        Context::new(&heard, &cancelled, "").with_source("/expert", file.clone(), Digest::of(b"as it was"));
    assert_eq!(context.source("/expert").unwrap(), b"as it was");
    fs_err::write(&file, b"as it is").unwrap();
    let failure = context.source("/expert").unwrap_err();
    assert_eq!(failure.blame(), Blame::Environment);
    assert!(
        failure
            .to_string()
            .contains("changed while the run was under way"),
        "{failure}"
    );
    fs_err::remove_file(&file).unwrap();
    assert_eq!(context.source("/expert").unwrap_err().blame(), Blame::Environment);
    assert_eq!(context.source("/other").unwrap_err().blame(), Blame::Us);
}

#[test]
fn progress_is_thinned_but_its_end_always_arrives() {
    let (heard, cancelled) = (Heard::default(), AtomicBool::new(false));
    let context = Context::new(&heard, &cancelled, "");
    for done in 0..=10_000 {
        context.progress(Progress {
            done,
            total: Some(10_000),
            unit: "steps".into(),
            ..Progress::default()
        });
    }
    let progress = heard.progress.lock().unwrap();
    assert_eq!((progress.first(), progress.last()), (Some(&0), Some(&10_000)));
    assert!(progress.len() < 5_000, "{} reports", progress.len());
}

#[test]
fn cancelling_is_seen_and_is_nobodys_fault() {
    let (heard, cancelled) = (Heard::default(), AtomicBool::new(false));
    let context = Context::new(&heard, &cancelled, "");
    context.check_cancelled().unwrap();
    cancelled.store(true, Ordering::Relaxed);
    assert_eq!(context.check_cancelled().unwrap_err().blame(), Blame::Cancelled);
    context.warn("look out");
    assert_eq!(
        heard.lines.lock().unwrap().as_slice(),
        [(Level::Warning, "look out".to_owned())]
    );
}
