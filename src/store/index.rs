//! The index: what the store's files say, in one file that is quick to ask.
//!
//! Invariant: everything in it is derived and every row carries the stamps of the files it speaks for, so that an index
//! that is missing, locked, damaged or out of date costs time and never correctness. A rollback journal, no WAL: that
//! would need shared memory, which network file systems do not have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::row::Row;
use super::stamp::Stamp;
use super::{ActionKey, Layout};

/// How long the run waits for the index before it reads the files instead: much longer than a healthy disk takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Changed when the tables change; an index of another version is left alone and not used.
const VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE results (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE sources (path TEXT PRIMARY KEY, size INT, inode INT, modified INT, changed INT, digest BLOB) WITHOUT ROWID;
    CREATE TABLE cells (manifest TEXT, cell TEXT, key BLOB NOT NULL, PRIMARY KEY (manifest, cell)) WITHOUT ROWID;
    PRAGMA user_version = 1;
";

/// The index of a store, as far as it can be had.
pub(super) struct Index {
    path: Utf8PathBuf,
    state: State,
    pending: Pending,
}

enum State {
    Opening(Receiver<rusqlite::Result<Connection>>),
    Open(Connection),
    Unavailable,
}

/// What is to be written when the time is right.
#[derive(Default)]
struct Pending {
    results: Vec<(ActionKey, Vec<u8>)>,
    sources: Vec<(Utf8PathBuf, Stamp, Digest)>,
    cells: Vec<(Arc<str>, String, ActionKey)>,
}

impl Index {
    /// Begins to open the index in the background.
    pub(super) fn open(layout: &Layout) -> Self {
        let path = layout.index();
        let (sender, receiver) = mpsc::channel();
        let thread_path = path.clone();
        thread::spawn(move || {
            // Where nobody waits any more, the connection is closed again.
            sender.send(connect(&thread_path)).ok();
        });
        Self {
            path,
            state: State::Opening(receiver),
            pending: Pending::default(),
        }
    }

    /// The index of a folder that is no store: none, and none is made.
    pub(super) fn none(layout: &Layout) -> Self {
        Self {
            path: layout.index(),
            state: State::Unavailable,
            pending: Pending::default(),
        }
    }

    /// What is remembered of an action's result.
    pub(super) fn result(&mut self, key: &ActionKey) -> Option<Row> {
        let found = self.query(|connection| {
            connection
                .prepare_cached("SELECT row FROM results WHERE key = ?1")?
                .query_row([key.bytes()], |row| {
                    Ok(row.get_ref(0)?.as_blob().ok().and_then(Row::decode))
                })
                .optional()
        });
        found.flatten().flatten()
    }

    /// Begins to ask many questions: the file is locked against writers once, not for each of them.
    pub(super) fn begin(&mut self) {
        self.query(|connection| connection.execute_batch("BEGIN"));
    }

    /// Ends what [`Index::begin`] began.
    pub(super) fn end(&mut self) {
        self.query(|connection| {
            if connection.is_autocommit() {
                Ok(())
            } else {
                connection.execute_batch("COMMIT")
            }
        });
    }

    /// Remembers an action's result.
    pub(super) fn remember_result(&mut self, key: ActionKey, row: &Row) {
        self.pending.results.push((key, row.encode()));
    }

    /// What is remembered of a source file.
    pub(super) fn source(&mut self, path: &Utf8Path) -> Option<(Stamp, Digest)> {
        let found = self.query(|connection| {
            connection
                .prepare_cached("SELECT size, inode, modified, changed, digest FROM sources WHERE path = ?1")?
                .query_row([path.as_str()], |row| {
                    let stamp = Stamp {
                        size: row.get::<_, i64>(0)? as u64,
                        inode: row.get::<_, i64>(1)? as u64,
                        modified: row.get::<_, i64>(2)? as u64,
                        changed: row.get::<_, i64>(3)? as u64,
                    };
                    Ok(digest(row.get_ref(4)?).map(|digest| (stamp, digest)))
                })
                .optional()
        });
        found.flatten().flatten()
    }

    /// Remembers a source file.
    pub(super) fn remember_source(&mut self, path: &Utf8Path, stamp: Stamp, digest: Digest) {
        self.pending.sources.push((path.to_owned(), stamp, digest));
    }

    /// The actions that the cells of a manifest were, by name; `None` where the index cannot be had.
    pub(super) fn cells(&mut self, manifest: &str) -> Option<BTreeMap<String, ActionKey>> {
        self.query(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT cell, key FROM cells WHERE manifest = ?1")?;
            let rows = statement.query_map([manifest], |row| Ok((row.get(0)?, digest(row.get_ref(1)?))))?;
            let known = rows.filter_map(|row| {
                let found = row.map(|(cell, key)| key.map(|key| (cell, ActionKey::from_digest(key))));
                found.transpose()
            });
            known.collect()
        })
    }

    /// Remembers the action that a cell of a manifest is.
    pub(super) fn remember_cell(&mut self, manifest: Arc<str>, cell: String, key: ActionKey) {
        self.pending.cells.push((manifest, cell, key));
    }

    /// Writes down what was remembered. Where that fails, it is found out again from the files when it is asked for.
    pub(super) fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if pending.results.is_empty() && pending.sources.is_empty() && pending.cells.is_empty() {
            return;
        }
        self.ready();
        if let State::Open(connection) = &mut self.state
            && write(connection, &pending).is_err()
        {
            self.state = State::Unavailable;
        }
    }

    /// Whether the index can be used.
    pub(super) fn is_available(&mut self) -> bool {
        self.ready();
        matches!(self.state, State::Open(_))
    }

    /// Where the index is.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    fn query<T>(&mut self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Option<T> {
        self.ready();
        let State::Open(connection) = &self.state else {
            return None;
        };
        let answer = ask(connection);
        if answer.is_err() {
            self.state = State::Unavailable;
        }
        answer.ok()
    }

    fn ready(&mut self) {
        if let State::Opening(receiver) = &self.state {
            self.state = match receiver.recv_timeout(PATIENCE) {
                Ok(Ok(connection)) => State::Open(connection),
                Ok(Err(_)) | Err(_) => State::Unavailable,
            };
        }
    }
}

/// Opens the index, makes it where it is missing, and makes it anew where it is damaged.
fn connect(path: &Utf8Path) -> rusqlite::Result<Connection> {
    // A link leads out of the store, where nothing may be written.
    if fs_err::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(rusqlite::Error::InvalidPath(path.as_std_path().to_owned()));
    }
    match try_connect(path) {
        Err(error) if is_damaged(&error) => {
            // Derived data: nothing is lost with it.
            fs_err::remove_file(path).ok();
            fs_err::remove_file(format!("{path}-journal")).ok();
            try_connect(path)
        }
        other => other,
    }
}

fn try_connect(path: &Utf8Path) -> rusqlite::Result<Connection> {
    let shared = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let writable = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | shared;
    let mut connection = Connection::open_with_flags(path, writable)?;
    connection.busy_timeout(PATIENCE / 2)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have been quicker.
        let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == 0 {
            transaction.execute_batch(SCHEMA)?;
        }
        transaction.commit()?;
    } else if version != VERSION {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.set_prepared_statement_cache_capacity(8);
    Ok(connection)
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

fn write(connection: &mut Connection, pending: &Pending) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    {
        let mut results = transaction.prepare_cached("INSERT OR REPLACE INTO results VALUES (?1, ?2)")?;
        for (key, row) in &pending.results {
            results.execute(params![key.bytes(), row])?;
        }
        let mut sources =
            transaction.prepare_cached("INSERT OR REPLACE INTO sources VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        for (path, stamp, digest) in &pending.sources {
            sources.execute(params![
                path.as_str(),
                stamp.size.cast_signed(),
                stamp.inode.cast_signed(),
                stamp.modified.cast_signed(),
                stamp.changed.cast_signed(),
                digest.bytes()
            ])?;
        }
        let mut cells = transaction.prepare_cached("INSERT OR REPLACE INTO cells VALUES (?1, ?2, ?3)")?;
        for (manifest, cell, key) in &pending.cells {
            cells.execute(params![manifest, cell, key.bytes()])?;
        }
    }
    transaction.commit()
}

fn digest(value: ValueRef<'_>) -> Option<Digest> {
    let bytes: [u8; 32] = value.as_blob().ok()?.try_into().ok()?;
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::{action, artifact};
    use super::super::row::tests::row;
    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(Utf8Path::from_path(folder.path()).unwrap());
        (folder, layout)
    }

    #[test]
    fn what_was_remembered_is_there_when_opened_again() {
        let (_folder, layout) = layout();
        let key = action(1).key();
        let row = row(vec![artifact("out", b"a")]);
        let mut index = Index::open(&layout);
        assert!(index.result(&key).is_none());
        index.remember_result(key, &row);
        index.remember_cell("m".into(), "cell".into(), key);
        index.flush();
        let mut index = Index::open(&layout);
        assert_eq!(index.result(&key), Some(row));
        let cells = index.cells("m").unwrap();
        assert_eq!(cells.get("cell"), Some(&key));
        assert_eq!(cells.get("other"), None);
        assert!(index.result(&action(2).key()).is_none());
    }

    #[test]
    fn a_damaged_index_is_made_anew() {
        let (_folder, layout) = layout();
        fs_err::write(layout.index(), vec![7_u8; 5000]).unwrap();
        let mut index = Index::open(&layout);
        assert!(index.is_available());
        let key = action(1).key();
        index.remember_result(key, &row(vec![artifact("out", b"a")]));
        index.flush();
        assert!(Index::open(&layout).result(&key).is_some());
    }

    #[test]
    fn an_index_that_cannot_be_had_is_done_without() {
        let (_folder, layout) = layout();
        fs_err::create_dir(layout.index()).unwrap();
        let mut index = Index::open(&layout);
        let key = action(1).key();
        index.remember_result(key, &row(vec![artifact("out", b"a")]));
        index.flush();
        assert!(!index.is_available());
        assert!(index.result(&key).is_none());
    }

    #[test]
    fn an_index_that_another_process_has_locked_is_done_without() {
        let (_folder, layout) = layout();
        assert!(Index::open(&layout).is_available());
        let other = Connection::open(layout.index()).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let mut index = Index::open(&layout);
        assert!(index.result(&action(1).key()).is_none());
        assert!(!index.is_available());
    }
}
