use provenir_api::port::Content;

use super::super::result::tests::action;
use super::super::{Lookup, MissReason};
use super::*;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Store,
}

fn port(name: &'static str, volatile: bool) -> OutputPort {
    OutputPort {
        name,
        doc: "",
        content: Content::File("txt".into()),
        volatile,
    }
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let store = Store::create(root.join("cache")).unwrap();
        Self {
            _folder: folder,
            store,
        }
    }

    /// What a worker hands over for action `number` when its only output is `text`.
    fn staged(&self, number: u64, text: &str) -> Staged {
        self.staged_with(number, &[("out", text, false)])
    }

    fn staged_with(&self, number: u64, outputs: &[(&'static str, &str, bool)]) -> Staged {
        let scratch = self.store.workspace().unwrap().folder().unwrap();
        let ports: Vec<OutputPort> = outputs
            .iter()
            .map(|(name, _, volatile)| port(name, *volatile))
            .collect();
        let announced: Vec<OutputArtifact> = outputs
            .iter()
            .map(|(name, text, _)| {
                let path = scratch.join(format!("{name}.txt"));
                fs_err::write(&path, text).unwrap();
                OutputArtifact {
                    port: (*name).to_owned(),
                    path,
                    content: Digest::of(text.as_bytes()),
                    object: Digest::of(text.as_bytes()),
                    size: text.len() as u64,
                    rows: None,
                    extension: "txt".into(),
                }
            })
            .collect();
        Staged::check(
            action(number),
            &ports,
            &announced,
            false,
            &scratch,
            BTreeMap::new(),
        )
        .unwrap()
    }

    fn commit(&self, staged: Staged) -> Commit {
        self.store.commit(vec![staged]).pop().unwrap().unwrap()
    }

    fn object(&self, text: &str) -> Utf8PathBuf {
        self.store.layout().object(&Digest::of(text.as_bytes()))
    }

    fn divergences(&self) -> usize {
        let mut found = 0;
        for shard in fs_err::read_dir(self.store.layout().results()).unwrap() {
            found += fs_err::read_dir(shard.unwrap().path())
                .unwrap()
                .filter(|entry| {
                    entry
                        .as_ref()
                        .unwrap()
                        .file_name()
                        .to_string_lossy()
                        .ends_with(".divergence.json")
                })
                .count();
        }
        found
    }
}

fn remove(path: &Utf8Path) {
    fs_err::remove_file(path).unwrap();
}

fn overwrite(path: &Utf8Path, text: &str) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    fs_err::write(path, text).unwrap();
}

#[test]
fn a_committed_result_is_found_with_and_without_the_index() {
    let fixture = Fixture::new();
    let key = action(1).key();
    assert!(matches!(
        fixture.store.lookup(&key).unwrap(),
        Lookup::Miss(MissReason::NoResult)
    ));
    let commit = fixture.commit(fixture.staged(1, "one"));
    assert_eq!(commit.outcome, Outcome::New);
    assert_eq!(commit.committed.outputs()[0].object, Digest::of(b"one"));
    fixture.store.flush();
    for _ in 0..2 {
        let store = Store::open(fixture.store.layout().root());
        let Lookup::Hit(found) = store.lookup(&key).unwrap() else {
            panic!("it was committed")
        };
        assert_eq!(found, commit.committed);
        remove(&fixture.store.layout().index());
    }
    let mode = fs_err::metadata(fixture.object("one"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn a_batch_larger_than_the_limit_for_single_syncs_is_committed_too() {
    let fixture = Fixture::new();
    let batch = (0..40)
        .map(|number| fixture.staged(number, &format!("text {number}")))
        .collect();
    let commits = fixture.store.commit(batch);
    assert!(
        commits
            .into_iter()
            .all(|commit| commit.unwrap().outcome == Outcome::New)
    );
    for number in 0..40 {
        let found = Store::open(fixture.store.layout().root())
            .lookup(&action(number).key())
            .unwrap();
        assert!(matches!(found, Lookup::Hit(_)));
    }
}

#[test]
fn two_actions_may_share_an_object() {
    let fixture = Fixture::new();
    let commits = fixture
        .store
        .commit(vec![fixture.staged(1, "same"), fixture.staged(2, "same")]);
    let objects: Vec<Digest> = commits
        .into_iter()
        .map(|commit| commit.unwrap().committed.outputs()[0].object)
        .collect();
    assert_eq!(objects, [Digest::of(b"same"); 2]);
}

#[test]
fn the_first_commit_wins_and_a_different_second_is_kept_beside_it() {
    let fixture = Fixture::new();
    let first = fixture.commit(fixture.staged(1, "first"));
    let second = fixture.commit(fixture.staged(1, "second"));
    assert!(
        matches!(&second.outcome, Outcome::Diverged { port, gave }
            if port == "out" && gave.len() == 1 && gave[..] != *second.committed.outputs()),
        "{:?}",
        second.outcome
    );
    assert_eq!(second.committed, first.committed);
    assert_eq!(fixture.divergences(), 1);
    let same = fixture.commit(fixture.staged(1, "first"));
    assert_eq!(same.outcome, Outcome::Same);
    assert_eq!(fixture.divergences(), 1);
}

#[test]
fn volatile_outputs_do_not_diverge() {
    let fixture = Fixture::new();
    let first = fixture.commit(fixture.staged_with(1, &[("out", "a", false), ("timing", "1 s", true)]));
    let second = fixture.commit(fixture.staged_with(1, &[("out", "a", false), ("timing", "2 s", true)]));
    assert!(
        matches!(&second.outcome, Outcome::Measured { gave } if gave[..] != *second.committed.outputs()),
        "{:?}",
        second.outcome
    );
    assert!(!second.outcome.is_divergence());
    assert_eq!(second.committed, first.committed);
    let same = fixture.commit(fixture.staged_with(1, &[("out", "a", false), ("timing", "1 s", true)]));
    assert_eq!(same.outcome, Outcome::Same);
}

#[test]
fn of_a_race_for_one_result_every_contender_gets_the_same() {
    let fixture = Fixture::new();
    let staged: Vec<Staged> = (0..8)
        .map(|number| fixture.staged(1, &format!("text {number}")))
        .collect();
    let store = &fixture.store;
    let commits: Vec<Commit> = std::thread::scope(|scope| {
        let threads: Vec<_> = staged
            .into_iter()
            .map(|staged| scope.spawn(move || store.commit(vec![staged]).pop().unwrap().unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let first = commits
        .iter()
        .filter(|commit| commit.outcome == Outcome::New)
        .count();
    assert_eq!(first, 1);
    assert!(
        commits
            .iter()
            .all(|commit| commit.committed == commits[0].committed)
    );
    assert_eq!(fixture.divergences(), 7);
}

#[test]
fn a_result_without_its_artifacts_is_a_miss_that_says_so_and_comes_back() {
    let fixture = Fixture::new();
    let key = action(1).key();
    fixture.commit(fixture.staged(1, "one"));
    remove(&fixture.object("one"));
    let Lookup::Miss(reason) = fixture.store.lookup(&key).unwrap() else {
        panic!("the object is gone")
    };
    assert_eq!(reason, MissReason::Missing(Digest::of(b"one")));
    assert_eq!(fixture.commit(fixture.staged(1, "one")).outcome, Outcome::Same);
    assert!(matches!(fixture.store.lookup(&key).unwrap(), Lookup::Hit(_)));
}

#[test]
fn a_different_result_replaces_one_whose_artifacts_are_gone() {
    let fixture = Fixture::new();
    let key = action(1).key();
    fixture.commit(fixture.staged(1, "first"));
    remove(&fixture.object("first"));
    let second = fixture.commit(fixture.staged(1, "second"));
    assert_eq!(
        second.outcome,
        Outcome::Replaced {
            port: "out".into(),
            measured: false
        }
    );
    assert_eq!(fixture.divergences(), 1);
    let Lookup::Hit(found) = fixture.store.lookup(&key).unwrap() else {
        panic!("it was committed")
    };
    assert_eq!(found, second.committed);
}

#[test]
fn a_damaged_object_is_refused_discarded_and_stored_again() {
    let fixture = Fixture::new();
    let key = action(1).key();
    let object = Digest::of(b"one");
    fixture.commit(fixture.staged(1, "one"));
    fixture.store.flush();
    overwrite(&fixture.object("one"), "two");
    let store = Store::open(fixture.store.layout().root());
    let Lookup::Miss(reason) = store.lookup(&key).unwrap() else {
        panic!("the object is damaged")
    };
    assert_eq!(reason, MissReason::Damaged(object));
    fixture.commit(fixture.staged(1, "one"));
    assert!(!store.discard_if_damaged(&object, None).unwrap());
    assert_eq!(fs_err::read_to_string(fixture.object("one")).unwrap(), "one");
    overwrite(&fixture.object("one"), "six");
    assert!(store.discard_if_damaged(&object, None).unwrap());
    assert!(!fixture.object("one").exists());
}

#[test]
fn an_object_that_was_only_touched_is_still_a_hit() {
    let fixture = Fixture::new();
    let key = action(1).key();
    fixture.commit(fixture.staged(1, "one"));
    fixture.store.flush();
    overwrite(&fixture.object("one"), "one");
    for _ in 0..2 {
        let store = Store::open(fixture.store.layout().root());
        assert!(matches!(store.lookup(&key).unwrap(), Lookup::Hit(_)));
        store.flush();
    }
}

#[test]
fn a_result_that_was_replaced_behind_the_index_is_read_again() {
    let fixture = Fixture::new();
    let key = action(1).key();
    let first = fixture.commit(fixture.staged(1, "first"));
    fixture.store.flush();
    remove(&fixture.store.layout().result(&key));
    let store = Store::open(fixture.store.layout().root());
    assert!(matches!(
        store.lookup(&key).unwrap(),
        Lookup::Miss(MissReason::NoResult)
    ));
    drop(first);
    let second = fixture.commit(fixture.staged(1, "second"));
    let Lookup::Hit(found) = store.lookup(&key).unwrap() else {
        panic!("it was committed")
    };
    assert_eq!(found, second.committed);
}

#[test]
fn a_result_that_cannot_be_read_is_replaced() {
    let fixture = Fixture::new();
    let key = action(1).key();
    let path = fixture.store.layout().result(&key);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(&path, "{").unwrap();
    assert!(matches!(
        fixture.store.lookup(&key).unwrap(),
        Lookup::Miss(MissReason::Unreadable)
    ));
    assert_eq!(fixture.commit(fixture.staged(1, "one")).outcome, Outcome::New);
    assert!(matches!(fixture.store.lookup(&key).unwrap(), Lookup::Hit(_)));
}

#[test]
fn outputs_that_are_not_what_was_announced_are_refused() {
    let fixture = Fixture::new();
    let scratch = fixture.store.workspace().unwrap().folder().unwrap();
    let path = scratch.join("out.txt");
    fs_err::write(&path, "text").unwrap();
    let good = OutputArtifact {
        port: "out".into(),
        path,
        content: Digest::of(b"text"),
        object: Digest::of(b"text"),
        size: 4,
        rows: None,
        extension: "txt".into(),
    };
    let check = |outputs: &[OutputArtifact]| {
        Staged::check(
            action(1),
            &[port("out", false)],
            outputs,
            false,
            &scratch,
            BTreeMap::new(),
        )
    };
    assert!(check(std::slice::from_ref(&good)).is_ok());
    let changes: [fn(&mut OutputArtifact); 5] = [
        |output| output.port = "other".into(),
        |output| output.size = 5,
        |output| output.extension = "parquet".into(),
        |output| output.path = "/etc/passwd".into(),
        |output| output.path = output.path.parent().unwrap().join("../out.txt"),
    ];
    for change in changes {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(matches!(check(&[bad]), Err(StoreError::Outputs(_))));
    }
    assert!(check(&[]).is_err());
    assert!(check(&[good.clone(), good.clone()]).is_err());
    let link = scratch.join("link.txt");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    assert!(check(&[OutputArtifact { path: link, ..good }]).is_err());
}

#[test]
fn what_fails_leaves_nothing_under_a_final_name_and_spares_the_others() {
    let fixture = Fixture::new();
    let bad = fixture.staged(1, "bad");
    for file in &bad.files {
        remove(file);
    }
    let mut commits = fixture
        .store
        .commit(vec![bad, fixture.staged(2, "good")])
        .into_iter();
    assert!(commits.next().unwrap().is_err());
    assert_eq!(commits.next().unwrap().unwrap().outcome, Outcome::New);
    assert!(matches!(
        fixture.store.lookup(&action(1).key()).unwrap(),
        Lookup::Miss(_)
    ));
    assert!(!fixture.object("bad").exists());
    let left: Vec<_> = fs_err::read_dir(fixture.store.layout().tmp())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.is_dir())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn checkpoints_go_when_their_cell_is_committed() {
    let fixture = Fixture::new();
    let partial = fixture.store.layout().partial(&action(1).key());
    fs_err::create_dir_all(&partial).unwrap();
    fs_err::write(partial.join("checkpoint"), "").unwrap();
    fixture.commit(fixture.staged(1, "one"));
    assert!(!partial.exists());
}

/// Bytes that this thread has read.
fn bytes_read() -> u64 {
    let counters = fs_err::read_to_string("/proc/thread-self/io").unwrap();
    let read = counters.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// A worker hashes what it writes; that has to do.
#[test]
fn what_is_committed_is_not_read_again() {
    const LENGTH: usize = 8 << 20;
    let fixture = Fixture::new();
    let staged = fixture.staged(1, &"x".repeat(LENGTH));
    let before = bytes_read();
    let committed = fixture.store.commit(vec![staged]);
    let read = bytes_read() - before;
    assert_eq!(committed[0].as_ref().unwrap().outcome, Outcome::New);
    assert!(read < 64 << 10, "{read} bytes were read");
    // The counter counts: whoever reads the object reads all of it.
    let object = committed[0].as_ref().unwrap().committed.outputs()[0].object;
    fs_err::read(fixture.store.layout().object(&object)).unwrap();
    assert!(bytes_read() - before >= LENGTH as u64);
}
