//! The files of a store as parts of an input: each part begins with a letter that says which file it is.
//!
//! Results are found under the keys of their actions, whatever key they claim, and objects under the digests of their bytes:
//! what only carries the wrong name is refused at once and teaches nothing. `@FOLDER@` stands for the folder that the store
//! lies in.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use memchr::memmem;
use provenir::store::{Action, Layout};
use provenir_api::Digest;
use serde_json::Value;

use crate::harness::folder;
use crate::sections;

/// Two runs: parts with small letters belong to the first, with capital letters to the second.
const RUNS: [&str; 2] = ["20260101-000000.000-aaaa", "20260102-000000.000-bbbb"];

/// The manifest whose store it is.
pub const MANIFEST: &str = r#"
format = 1
[pipeline]
name = "fuzz"
[axes]
a = [1, 2]
[stages.first]
kind = "noop"
params = { value = "${a}" }
[stages.second]
kind = "clock"
inputs = { one = "first" }
[stages.total]
kind = "noop"
inputs = { many = "second" }
publish = { sum = "out/total.parquet" }
"#;

/// Files of a run, by letter.
const RUN_FILES: [(u8, &str); 5] = [
    (b'h', "run.json"),
    (b'r', "records.jsonl"),
    (b'e', "events.jsonl"),
    (b'o', "outcome.json"),
    (b'n', "annotation.json"),
];

/// A store made of the parts of an input; its files go when it is dropped.
pub struct Parts {
    layout: Layout,
    written: BTreeSet<Utf8PathBuf>,
}

impl Parts {
    /// Lays the files down.
    pub fn lay(data: &[u8]) -> Self {
        let layout = Layout::new(folder().join("cache"));
        let mut parts = Self {
            layout,
            written: BTreeSet::new(),
        };
        // A folder where the index should be: the store does without, which is quicker than making one each time.
        fs_err::create_dir_all(parts.layout.index()).expect("a folder can be made");
        for part in sections(data).into_iter().take(24) {
            if let Some((letter, content)) = part.split_first() {
                parts.lay_one(*letter, content);
            }
        }
        parts
    }

    /// Where the store is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn lay_one(&mut self, letter: u8, content: &[u8]) {
        let content = &replaced(content, b"@FOLDER@", folder().as_str().as_bytes())[..];
        let run = usize::from(letter.is_ascii_uppercase());
        if let Some((_, name)) = RUN_FILES
            .iter()
            .find(|(known, _)| *known == letter.to_ascii_lowercase())
        {
            let path = self.layout.runs().join(RUNS[run]).join(name);
            return self.write(&path, content);
        }
        match letter {
            b'R' | b'D' => {}
            b's' => self.result(content, false),
            b'd' => self.result(content, true),
            b'b' => self.write(&self.layout.object(&Digest::of(content)), content),
            b'q' => self.write(&self.layout.runs().join("noop.jsonl"), content),
            b'g' => self.write(&self.layout.runs().join("gc.jsonl"), content),
            b'v' => self.write(&self.layout.runs().join("audits.jsonl"), content),
            b'p' => self.named(&self.layout.pins(), ".json", content),
            b'u' => self.named(&self.layout.published(), ".json", content),
            b'c' => self.named(&self.layout.claims(), "", content),
            b't' => self.write(&self.layout.root().join("CACHEDIR.TAG"), content),
            _ => {}
        }
    }

    /// A result under its own key, and saying so.
    fn result(&mut self, content: &[u8], diverges: bool) {
        let mut value: Value = serde_json::from_slice(content).unwrap_or_default();
        let action = value
            .get("action")
            .cloned()
            .and_then(|action| serde_json::from_value::<Action>(action).ok());
        let Some(action) = action else {
            let path = self
                .layout
                .results()
                .join("00")
                .join(format!("{}.json", "0".repeat(64)));
            return self.write(&path, content);
        };
        let key = action.key();
        let mut bytes = content.to_vec();
        if let Some(object) = value.as_object_mut() {
            object.insert("key".to_owned(), Value::from(key.hex()));
            bytes = value.to_string().into_bytes();
        }
        let path = if diverges {
            self.layout.divergence(&key, &Digest::of(content))
        } else {
            self.layout.result(&key)
        };
        self.write(&path, &bytes);
    }

    /// A file whose name is a digest of its content.
    fn named(&mut self, folder: &Utf8Path, ending: &str, content: &[u8]) {
        let path = folder.join(format!("{}{ending}", Digest::of(content)));
        self.write(&path, content);
    }

    fn write(&mut self, path: &Utf8Path, content: &[u8]) {
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).expect("a folder can be made");
        }
        fs_err::write(path, content).expect("a file can be written");
        self.written.insert(path.to_owned());
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for path in &self.written {
            fs_err::remove_file(path).ok();
            // Only empty ones go.
            for folder in path
                .ancestors()
                .skip(1)
                .take_while(|folder| *folder != self.layout.root())
            {
                fs_err::remove_dir(folder).ok();
            }
        }
    }
}

fn replaced(content: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = memmem::find(rest, from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// The parts of a store that lies in `folder`, as [`Parts::lay`] takes them; of several runs the first two.
pub fn parts_of(root: &Utf8Path) -> Vec<Vec<u8>> {
    let layout = Layout::new(root.join("cache"));
    let mut parts = Vec::new();
    let mut take = |letter: u8, path: &Utf8Path| {
        let Ok(content) = fs_err::read(path) else { return };
        let content = replaced(&content, root.as_str().as_bytes(), b"@FOLDER@");
        parts.push([&[letter], &content[..]].concat());
    };
    for path in below(layout.results()) {
        let diverges = path.as_str().ends_with(".divergence.json");
        take(if diverges { b'd' } else { b's' }, &path);
    }
    for path in below(layout.objects()) {
        take(b'b', &path);
    }
    let mut runs: Vec<Utf8PathBuf> = entries(&layout.runs())
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    runs.sort();
    for (run, folder) in runs.iter().take(2).enumerate() {
        for (letter, name) in RUN_FILES {
            let letter = if run == 0 {
                letter
            } else {
                letter.to_ascii_uppercase()
            };
            take(letter, &folder.join(name));
        }
    }
    take(b'q', &layout.runs().join("noop.jsonl"));
    take(b'g', &layout.runs().join("gc.jsonl"));
    take(b'v', &layout.runs().join("audits.jsonl"));
    for (letter, folder) in [
        (b'p', layout.pins()),
        (b'u', layout.published()),
        (b'c', layout.claims()),
    ] {
        for path in below(&folder) {
            take(letter, &path);
        }
    }
    parts
}

fn entries(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    entries.map(|entry| entry.into_path()).collect()
}

/// All files below a folder, sorted.
pub fn below(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
