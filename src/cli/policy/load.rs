use std::io::Read;

use camino::Utf8Path;
use provenir_api::port::Content;
use provenir_api::{Digest, schema};
use provenir_kinds::Environment;
use provenir_policy::PolicySet;
use provenir_stable_baselines::{self as stable_baselines, Agent, ArchiveError};
use provenir_table::Table;

use crate::cli::arguments::AgentArguments;
use crate::cli::error::CommandError;
use crate::cli::reference::Found;
use crate::cli::show::unreadable;
use crate::store::StoreError;

/// The longest file of safetensors, and the longest archive, that is read.
const LIMIT: u64 = 1 << 30;

/// Policies, and what is known of them.
#[derive(Debug)]
pub(in crate::cli) struct Loaded {
    pub(in crate::cli) policies: PolicySet,
    /// An archive does not tell the environment, nor whether the agent reads the time feature, nor how observations were
    /// standardised: only what was given counts.
    pub(super) is_archive: bool,
    pub(super) has_environment: bool,
    pub(super) has_time_feature: bool,
}

/// What a file begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Format {
    /// Parquet, by its first bytes or its name.
    Table,
    /// A zip archive, by its first bytes or its name.
    Archive,
    /// By its first bytes, the length of a JSON object, or its name.
    Safetensors,
    Other,
}

impl Format {
    /// Looks at the first bytes of a file.
    pub(in crate::cli) fn of(path: &Utf8Path) -> Result<Self, StoreError> {
        let failed = || StoreError::io("cannot read the file");
        let mut magic = Vec::new();
        fs_err::File::open(path)
            .map_err(failed())?
            .take(9)
            .read_to_end(&mut magic)
            .map_err(failed())?;
        Ok(match &magic[..] {
            [b'P', b'A', b'R', b'1', ..] => Self::Table,
            [b'P', b'K', 3, 4, ..] => Self::Archive,
            [_, _, _, _, _, 0, 0, 0, b'{'] => Self::Safetensors,
            // What a file is called it should be: its reader says what is wrong with it.
            _ => match path.extension() {
                Some("parquet") => Self::Table,
                Some("zip") => Self::Archive,
                Some("safetensors") => Self::Safetensors,
                _ => Self::Other,
            },
        })
    }
}

/// The policies in a table; `None` where its columns are not those of policies.
pub(in crate::cli) fn of_table(table: &Table) -> Option<Result<Loaded, String>> {
    let Content::Table(schema) = provenir_kinds::tables::policy() else {
        unreachable!("policies are tables");
    };
    if table.schema() != schema {
        return None;
    }
    let policies = PolicySet::from_table(table).map_err(|error| error.to_string());
    Some(policies.map(Loaded::told))
}

/// The policies in a file of safetensors.
pub(in crate::cli) fn of_safetensors(path: &Utf8Path) -> Result<Loaded, CommandError> {
    let policies = PolicySet::from_safetensors(&bytes(path)?)
        .map_err(|error| CommandError::request(format!("`{path}` is {error}")))?;
    Ok(Loaded::told(policies))
}

/// The policy in a Stable-Baselines3 archive; `None` where the archive is of something else.
pub(in crate::cli) fn of_archive(
    path: &Utf8Path,
    given: &AgentArguments,
) -> Result<Option<Loaded>, CommandError> {
    let archive = bytes(path)?;
    let statistics = given.normalization.as_deref().map(bytes).transpose()?;
    let agent = Agent {
        archive: &archive,
        statistics: statistics.as_deref(),
        activation: given.activation,
        environment: given.environment()?.unwrap_or_default(),
        time_feature: given.time_feature.unwrap_or(false),
    };
    match stable_baselines::read(&agent) {
        Ok(policy) => {
            let loaded = Loaded {
                policies: PolicySet::single(policy),
                is_archive: true,
                has_environment: given.env.is_some(),
                has_time_feature: given.time_feature.is_some(),
            };
            // What was given for it is wrong then.
            loaded.check_fits(path)?;
            Ok(Some(loaded))
        }
        Err(stable_baselines::Error::Archive(ArchiveError::Missing(_))) if !given.is_given() => Ok(None),
        Err(error) => {
            let file = match &given.normalization {
                Some(statistics) if error.is_of_statistics() => statistics,
                _ => path,
            };
            let told = CommandError::request(format!("`{file}` cannot be read: {error}"));
            Err(match error.help() {
                // There, a parameter; here, an option.
                Some(help) => told.help(
                    help.replace("the parameter `activation`", "`--activation`")
                        .replace("(\"relu\" or \"tanh\")", "(relu or tanh)"),
                ),
                None => told,
            })
        }
    }
}

/// The policies that were found, whatever they are in.
pub(in crate::cli) fn load(found: &Found, given: &AgentArguments) -> Result<Loaded, CommandError> {
    let path = &found.path;
    let format = Format::of(path)?;
    given.check(path, format)?;
    let none = || {
        CommandError::request(format!("`{path}` holds no policy")).help(
            "a policy is what `train` and `expert` give, a file of safetensors, or a Stable-Baselines3 archive (.zip)",
        )
    };
    match format {
        Format::Table => {
            let table = provenir_table::read(path, found.object).map_err(|error| unreadable(&error))?;
            of_table(&table)
                .ok_or_else(none)?
                .map_err(|reason| CommandError::request(format!("`{path}`: {reason}")))
        }
        Format::Archive => of_archive(path, given)?.ok_or_else(none),
        Format::Safetensors => of_safetensors(path),
        Format::Other => Err(none()),
    }
}

fn bytes(path: &Utf8Path) -> Result<Vec<u8>, CommandError> {
    let failed = |error: std::io::Error| CommandError::request(error.to_string());
    let mut bytes = Vec::new();
    fs_err::File::open(path)
        .map_err(failed)?
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(CommandError::request(format!(
            "`{path}` holds more than {LIMIT} bytes; no policy is that large"
        )));
    }
    Ok(bytes)
}

impl Loaded {
    /// Policies that say all of themselves.
    fn told(policies: PolicySet) -> Self {
        Self {
            policies,
            is_archive: false,
            has_environment: true,
            has_time_feature: true,
        }
    }

    /// That what an archive leaves open was given.
    pub(in crate::cli) fn check_complete(&self, path: &Utf8Path) -> Result<(), CommandError> {
        if self.has_environment {
            return Ok(());
        }
        Err(CommandError::request(format!(
            "`{path}` does not tell the environment that its agent acts in"
        ))
        .help(
            "give --env NAME; and --normalization FILE and --time-feature, where the agent was trained with them",
        ))
    }

    /// That they can act in the environment that they are for.
    pub(in crate::cli) fn check_fits(&self, path: &Utf8Path) -> Result<(), CommandError> {
        self.fits().map_err(|misfit| {
            CommandError::request(format!("the policy `{path}` does not fit: {misfit}"))
                .help(misfit.help(self.is_archive))
        })
    }

    /// Digest of their content as a table, where they are complete.
    pub(in crate::cli) fn content(&self) -> Result<Option<Digest>, CommandError> {
        if !self.has_environment {
            return Ok(None);
        }
        let table = self.policies.to_table().map_err(|error| unreadable(&error))?;
        Ok(Some(table.content()))
    }
}

impl AgentArguments {
    pub(in crate::cli) fn is_given(&self) -> bool {
        self.env.is_some()
            || self.normalization.is_some()
            || self.activation.is_some()
            || self.time_feature.is_some()
    }

    /// The environment's name, where one is given.
    fn environment(&self) -> Result<Option<&str>, CommandError> {
        let Some(name) = &self.env else {
            return Ok(None);
        };
        let names = || Environment::ALL.iter().map(|environment| environment.name());
        if names().any(|known| known == name) {
            return Ok(Some(name));
        }
        let help = match schema::nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", schema::list(names())),
        };
        Err(CommandError::request(format!("there is no environment `{name}`")).help(help))
    }

    /// That they are given for an archive only: other files say all of themselves.
    pub(in crate::cli) fn check(&self, path: &Utf8Path, format: Format) -> Result<(), CommandError> {
        if self.is_given() && format != Format::Archive {
            return Err(CommandError::request(format!(
                "--env, --normalization, --activation and --time-feature are for Stable-Baselines3 archives; `{path}` is none"
            ))
            .help("leave them out: a policy says all of that itself"));
        }
        Ok(())
    }
}
