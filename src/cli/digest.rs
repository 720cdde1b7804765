//! Artifacts and actions as people name them without a manifest: by the beginning of a digest.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Digest, schema};

use super::arguments::{ManifestArguments, StoreArguments};
use super::error::CommandError;
use super::{environment, session};
use crate::store::{ActionKey, ActionResult, Artifact, Layout, Store, StoreError};

/// Fewest digits of a digest that are taken for one.
const FEWEST: usize = 4;
/// So many of several that are meant are named.
const SHOWN: usize = 12;

/// The beginning of a digest, and an output port where one was named after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beginning<'a> {
    digits: String,
    port: Option<&'a str>,
}

/// A whole digest that names something.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    /// An artifact's bytes.
    Object(Digest),
    /// An action.
    Action(ActionKey),
}

/// What a digest names.
#[derive(Debug)]
pub(super) enum Named {
    /// An artifact's bytes.
    Object(Digest),
    /// An output of an action.
    Output(Artifact),
}

impl<'a> Beginning<'a> {
    /// Takes a text for the beginning of a digest, if it can be one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (digits, port) = match text.split_once('.') {
            Some((digits, port)) => (digits, Some(port)),
            None => (text, None),
        };
        let is_digest =
            (FEWEST..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| Self {
            digits: digits.to_ascii_lowercase(),
            port,
        })
    }

    /// Whether a digest begins so.
    pub(super) fn begins(&self, hex: &str) -> bool {
        hex.starts_with(&self.digits)
    }

    /// What it names in a store; `None` where that has nothing of the name.
    pub(super) fn find(&self, layout: &Layout) -> Result<Option<Named>, CommandError> {
        let key = match self.name(layout)? {
            None => return Ok(None),
            Some(Name::Object(object)) => return Ok(Some(Named::Object(object))),
            Some(Name::Action(key)) => key,
        };
        let result = Store::open(layout.root())
            .result(&key)?
            .ok_or_else(|| CommandError::request(format!("the result of action {} is gone", key.short())))?;
        Ok(Some(Named::Output(self.output(&key, result)?)))
    }

    /// The one name in a store that begins so; `None` where there is none.
    pub(super) fn name(&self, layout: &Layout) -> Result<Option<Name>, CommandError> {
        let keys = self.names(layout.results(), ".json")?;
        let objects = match self.port {
            None => self.names(layout.objects(), "")?,
            Some(_) => BTreeSet::new(),
        };
        let all: Vec<&String> = objects.iter().chain(&keys).collect();
        let [name] = all[..] else {
            if all.is_empty() {
                return Ok(None);
            }
            return Err(self.ambiguous(all.iter().map(|name| name.as_str())));
        };
        let wrong = |error: provenir_api::DigestError| CommandError::request(error.to_string());
        Ok(Some(if objects.contains(name) {
            Name::Object(name.parse().map_err(wrong)?)
        } else {
            Name::Action(name.parse().map_err(wrong)?)
        }))
    }

    /// The output that is meant: the first of an action's where none is named, as for a cell.
    fn output(&self, key: &ActionKey, result: ActionResult) -> Result<Artifact, CommandError> {
        let names: Vec<String> = result.outputs.iter().map(|output| output.port.clone()).collect();
        let mut outputs = result.outputs.into_iter();
        let found = match self.port {
            None => outputs.next(),
            Some(port) => outputs.find(|output| output.port == port),
        };
        found.ok_or_else(|| {
            let message = format!(
                "action {} has no output `{}`",
                key.short(),
                self.port.unwrap_or_default()
            );
            let known = names.iter().map(String::as_str);
            CommandError::request(message).help(format!("it has {}", schema::list(known)))
        })
    }

    /// Several digests begin so.
    pub(super) fn ambiguous<'b>(&self, digests: impl Iterator<Item = &'b str> + Clone) -> CommandError {
        let count = digests.clone().count();
        let mut names: Vec<String> = digests
            .take(SHOWN)
            .map(|digest| digest.chars().take(self.digits.len() + 8).collect())
            .collect();
        if count > SHOWN {
            names.push(format!("and {} more", count - SHOWN));
        }
        CommandError::request(format!(
            "`{}` begins {count} digests; give more digits",
            self.digits
        ))
        .help(names.join(", "))
    }

    /// Nothing begins so.
    pub(super) fn unknown(&self, layout: &Layout) -> CommandError {
        let root = session::short(layout.root());
        if !layout.root().is_dir() {
            return CommandError::request(format!(
                "there is no store `{root}` to look for `{}` in",
                self.digits
            ))
            .help("`--cache` or PROVENIR_CACHE names another store");
        }
        CommandError::request(format!(
            "no object and no action of the store `{root}` has a digest that begins with `{}`",
            self.digits
        ))
        .help("`provenir plan --verbose` lists the keys of actions, `provenir show CELL` an artifact's digest; `--cache` names another store")
    }

    /// Names (without suffix) of files in a sharded folder that begin so.
    fn names(&self, folder: &Utf8Path, suffix: &str) -> Result<BTreeSet<String>, StoreError> {
        let failed = || StoreError::io("cannot read the store");
        let entries = match fs_err::read_dir(folder.join(&self.digits[..2])) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(failed()(error)),
        };
        let mut found = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(failed())?.file_name();
            if let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(suffix))
                && self.begins(stem)
                && stem.len() == 64
            {
                found.insert(stem.to_owned());
            }
        }
        Ok(found)
    }
}

/// The store that is meant where no manifest has to be read: the one asked for, or the nearest from the manifest's
/// folder, whether the manifest exists or not.
pub(super) fn store(arguments: &ManifestArguments) -> Result<Layout, CommandError> {
    store_of(&arguments.manifest, &arguments.store)
}

/// As [`store`], for commands that change nothing in the manifest.
pub(super) fn store_of(manifest: &Utf8Path, arguments: &StoreArguments) -> Result<Layout, CommandError> {
    let manifest: Utf8PathBuf = environment::working_folder()?.join(manifest);
    let folder = manifest.parent().unwrap_or(&manifest);
    Ok(Layout::new(environment::store(
        arguments.cache.as_deref(),
        folder,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_taken_for_a_digest_with_what_follows_them() {
        let read = |text| Beginning::parse(text).map(|found| (found.digits, found.port));
        assert_eq!(read("BeeF"), Some(("beef".to_owned(), None)));
        assert_eq!(read("0123ab.sum"), Some(("0123ab".to_owned(), Some("sum"))));
        for text in ["bee", "beef[a=1]", "policy", &"a".repeat(65), "", ".sum"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
