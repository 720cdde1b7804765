mod trust;

use camino::Utf8PathBuf;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use provenir_api::schema;
use provenir_policy::Activation;
use serde_json::Number;

use crate::cli::measure;
use crate::manifest::Overrides;

use trust::{AUDIT, AUDIT_USAGE, GC, RUNS};
pub(super) use trust::{
    AuditArguments, DiffArguments, GcArguments, LineageArguments, LineageFormat, PinArguments, RunsAction,
    RunsArguments, UnpinArguments, VerifyArguments, WhyArguments,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a stage failed, or a check found a difference
  2    the request or the manifest was wrong
  3    the environment failed: store, disk, device
  4    a bug of ours
  130  interrupted";

/// Turns TOML manifests into figures: runs only what it does not already hold, and keeps every artifact under the
/// digest of its content.
#[derive(Debug, Parser)]
#[command(name = "provenir", bin_name = "provenir", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run what is not up to date, and publish.
    Run(RunArguments),
    /// Say what would run, and why.
    Plan(PlanArguments),
    /// Say why a cell has to run, or why it ran: what differs from an earlier run, back to the root cause.
    Why(WhyArguments),
    /// Say what an artifact was made from, down to sources, and what was made from it, up to figures.
    Lineage(LineageArguments),
    /// Say what the store has of a pipeline, and what is running.
    Status(ManifestArguments),
    /// Describe an artifact: a policy's network, or a table's columns, statistics, metadata and first rows.
    Show(ShowArguments),
    /// Draw an episode of a policy as an animation: GIF, animated PNG or animated SVG.
    Render(RenderArguments),
    /// Write a policy, or where results come from, in the formats of other programs.
    Export(ExportArguments),
    /// Print where an artifact is.
    Path(ReferenceArguments),
    /// Print what a cell said when it was last executed.
    Log(LogArguments),
    /// List what was run; tag a run, or note something about it.
    #[command(after_help = RUNS)]
    Runs(RunsArguments),
    /// Say what differs between two runs: manifest, environment, artifacts, metrics.
    Diff(DiffArguments),
    /// Compute results again in a scratch store, and say whether the same comes out.
    #[command(override_usage = AUDIT_USAGE, after_help = AUDIT)]
    Audit(AuditArguments),
    /// Read everything in the store again, and say what is damaged, missing or of no use.
    Verify(VerifyArguments),
    /// Say what of the store nothing needs any more, and why; remove it with --yes.
    #[command(after_help = GC)]
    Gc(GcArguments),
    /// Keep a run's results, or a cell's with all that they rest on, from `gc`; without argument, list what is pinned.
    Pin(PinArguments),
    /// Take a pin away.
    Unpin(UnpinArguments),
    /// Print the JSON Schema of manifests, for editors.
    Schema,
    /// Write a manifest to start from, and a store beside it.
    Init(InitArguments),
    /// Check the installation, the worker, the store and the disk.
    Doctor(StoreArguments),
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// Which manifest, and what is changed in it.
#[derive(Clone, Debug, Args)]
pub(super) struct ManifestArguments {
    /// The manifest.
    #[arg(default_value = "pipeline.toml", value_parser = path())]
    pub(super) manifest: Utf8PathBuf,
    #[command(flatten)]
    pub(super) overrides: OverrideArguments,
    #[command(flatten)]
    pub(super) store: StoreArguments,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(super) struct OverrideArguments {
    /// Lay a profile of the manifest over it.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    profile: Option<String>,
    /// Give an axis other values.
    #[arg(long, value_name = "NAME=VALUE,…")]
    axis: Vec<String>,
    /// Set a value at a dotted path of the manifest, such as stages.policy.params.epochs=50.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Only this stage and what it needs; may be repeated.
    #[arg(long, value_name = "STAGE")]
    only: Vec<String>,
    /// Let the numeric platform (processor, device, library versions) be part of every key: results of another are not
    /// taken.
    #[arg(long)]
    pub(super) strict_platform: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct StoreArguments {
    /// The store [default: `PROVENIR_CACHE`, or the nearest `cache` folder of Provenir above the manifest, or `cache` beside it]
    #[arg(long, value_name = "FOLDER", value_parser = path())]
    pub(super) cache: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) manifest: ManifestArguments,
    /// Execute these cells although the store has their results, such as 'policy[method=rbc]'; may be repeated. The first
    /// result stays; another one is kept beside it, and so is what was measured anew.
    #[arg(long, value_name = "CELL")]
    pub(super) force: Vec<String>,
    /// Processor cores that cells may occupy together [default: all].
    #[arg(long, short, value_name = "N", value_parser = measure::parse_jobs)]
    pub(super) jobs: Option<u32>,
    /// Print every event as a line of JSON on standard output.
    #[arg(long, conflicts_with = "quiet")]
    pub(super) json: bool,
    /// Say nothing but what went wrong.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    pub(super) manifest: ManifestArguments,
    /// As for `run`.
    #[arg(long, value_name = "CELL")]
    pub(super) force: Vec<String>,
    /// List every cell.
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Print a list of JSON objects, one for each cell in the order of the plan: cell, stage, point (its value of each axis),
    /// state (up-to-date, to-run, unknown), key, reason, `waits_for`, `own_change` (of a cell that waits), and publish, a list:
    /// port, path, and what a run does for the copy (unchanged, new, updated, restored-missing, restored-altered, displaced), or the problem with it; null is what is
    /// not known, or does not apply.
    #[arg(long, conflicts_with = "verbose")]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReferenceArguments {
    /// An output of a cell, such as 'policy[epsilon=0.1]' or 'reward[epsilon=0.1].summary'; the beginning of an object's digest
    /// or of an action key, which need no manifest; or a file.
    #[arg(value_name = "REF", value_parser = NonEmptyStringValueParser::new())]
    pub(super) reference: String,
    #[command(flatten)]
    pub(super) manifest: ManifestArguments,
}

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArguments,
    /// Print an object of JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) agent: AgentArguments,
}

#[derive(Debug, Args)]
pub(super) struct RenderArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArguments,
    /// The file to write: a GIF, an animated PNG (.apng, .png) or an animated SVG by the end of its name.
    #[arg(long, short, value_name = "FILE", value_parser = path())]
    pub(super) out: Utf8PathBuf,
    /// Which checkpoint of the policy acts [default: the last].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) checkpoint: Option<Number>,
    /// Seed of the initial states, as `evaluate` has it [default: 0].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) seed: Option<Number>,
    /// Which of the episodes that `evaluate` runs with that seed [default: 0].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) trial: Option<Number>,
    /// Steps after which the animation ends [1 to 1000; default: 1000, the longest episode].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) steps: Option<Number>,
    /// How many simulated seconds a second shows: 0.5 is slow motion [0.05 to 20; default: 1].
    #[arg(long, value_name = "X", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) speed: Option<Number>,
    /// Frames a second [1 to 50; default: 20].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) fps: Option<Number>,
    /// Width in pixels [240 to 1920; default: 512].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) width: Option<Number>,
    /// Height in pixels [160 to 1080; default: 288].
    #[arg(long, value_name = "N", value_parser = measure::parse_number, allow_negative_numbers = true)]
    pub(super) height: Option<Number>,
    /// The words above the picture, "" for none [default: task and method].
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// Say nothing but what went wrong.
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) agent: AgentArguments,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// A run (the beginning of its name, its last four characters, a tag, or `last`), a published figure, a manifest, whose
    /// last run is meant (with --profile and the like: its last run with the same), or a cell such as 'reward[epsilon=0.1]' or the beginning of its action key, with all that they were
    /// made from [default: the last run of the manifest]. With --format safetensors a policy: an output of a cell, the beginning
    /// of a digest, or a file.
    #[arg(value_name = "RUN|FIGURE|CELL", value_parser = NonEmptyStringValueParser::new())]
    pub(super) what: Option<String>,
    #[command(flatten)]
    pub(super) manifest: ManifestArguments,
    /// The format.
    #[arg(long, value_enum)]
    pub(super) format: ExportFormat,
    /// The file to write, `-` for standard output; the folder, of ro-crate [default: in the working folder, named after what
    /// is exported].
    #[arg(long, short, value_name = "FILE|FOLDER", value_parser = path())]
    pub(super) out: Option<Utf8PathBuf>,
    /// Of ro-crate: describe the artifacts, digests and all, and do not copy them.
    #[arg(long)]
    pub(super) without_data: bool,
    /// Of ro-crate: the licence under which others may use it [default: none is stated].
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(super) license: Option<String>,
    #[command(flatten)]
    pub(super) agent: AgentArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// A policy as PyTorch and JAX read it, and `collect` takes it as an expert.
    Safetensors,
    /// For papers and archives: a folder with the manifest, the artifacts, and what was made from what (Provenance Run Crate
    /// 0.5).
    RoCrate,
    /// For lineage tools: events, a line each (OpenLineage 2-0-2).
    Openlineage,
    /// For interchange: a graph of entities, activities and agents (W3C PROV-JSON).
    Prov,
    /// For supply chains: a statement, not signed (in-toto Statement v1 with SLSA Provenance v1).
    InToto,
}

/// What a Stable-Baselines3 archive does not tell of its agent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Stable-Baselines3 archives")]
pub(super) struct AgentArguments {
    /// The environment that the agent acts in.
    #[arg(long, value_name = "NAME")]
    pub(super) env: Option<String>,
    /// What `VecNormalize.save` wrote, where the agent was trained with it.
    #[arg(long, value_name = "FILE")]
    pub(super) normalization: Option<Utf8PathBuf>,
    /// Activation of the hidden layers, where the archive does not tell: relu or tanh.
    #[arg(long, value_name = "NAME")]
    pub(super) activation: Option<Activation>,
    /// Whether its observations end with the share of the episode's time that is left.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) time_feature: Option<bool>,
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// The cell, such as 'policy[epsilon=0.1, method=rbc]', with axes left out where one cell remains; or the beginning of
    /// an action key or of an object's digest, which need no manifest.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(super) cell: String,
    #[command(flatten)]
    pub(super) manifest: ManifestArguments,
}

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The folder; made where it does not exist.
    #[arg(default_value = ".", value_parser = path())]
    pub(super) folder: Utf8PathBuf,
}

/// A path that names something.
fn path() -> impl TypedValueParser<Value = Utf8PathBuf> {
    NonEmptyStringValueParser::new().map(Utf8PathBuf::from)
}

impl OverrideArguments {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            profile: self.profile.clone(),
            axes: self.axis.clone(),
            set: self.set.clone(),
            only: self.only.clone(),
        }
    }

    /// Whether anything is changed.
    pub(super) fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// As they are written on the command line, ready to be copied into a shell.
    pub(super) fn words(&self) -> Vec<String> {
        let options = [
            ("--profile", self.profile.as_slice()),
            ("--axis", self.axis.as_slice()),
            ("--set", self.set.as_slice()),
            ("--only", self.only.as_slice()),
        ];
        let mut words: Vec<String> = options
            .iter()
            .flat_map(|(option, values)| values.iter().map(move |value| [*option, value.as_str()]))
            .flatten()
            .map(quoted)
            .collect();
        if self.strict_platform {
            words.push("--strict-platform".to_owned());
        }
        words
    }

    /// As they stand behind the name of a manifest: ` with …`, or nothing.
    pub(super) fn suffix(&self, others: &[String]) -> String {
        let mut words = self.words();
        words.extend_from_slice(others);
        if words.is_empty() {
            String::new()
        } else {
            format!(" with `{}`", words.join(" "))
        }
    }

    /// Those of a `run` whose command line was recorded; `None` where it was another command, or of a version whose
    /// options are not those of this one.
    pub(super) fn recorded(command: &[String]) -> Option<Self> {
        match Arguments::try_parse_from(command).ok()?.command {
            Command::Run(run) => Some(run.manifest.overrides),
            _ => None,
        }
    }
}

/// Replaces the advice that the parser gives on an option that a command does not have: to take it for the name of a file
/// is never meant, and another command may have it.
pub(super) fn advise(error: &mut clap::Error) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let option = option.split('=').next().unwrap_or(option);
    let command = Arguments::command();
    let owners = command.get_subcommands().filter(|command| {
        command.get_arguments().any(|argument| {
            let long = argument.get_long().zip(option.strip_prefix("--"));
            let short = argument.get_short().zip(option.strip_prefix('-'));
            long.is_some_and(|(known, name)| known == name)
                || short.is_some_and(|(known, name)| name.chars().eq([known]))
        })
    });
    let owners: Vec<&str> = owners.map(clap::Command::get_name).collect();
    if !owners.is_empty() {
        let advice = format!("`{option}` belongs to {}", schema::list(owners.into_iter()));
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![advice.into()]),
        );
        // A name that resembles it is not what is meant.
        error.remove(ContextKind::SuggestedArg);
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_of_a_run_is_understood_and_written_as_it_was_given() {
        let command = |text: &str| -> Vec<String> { text.split('|').map(str::to_owned).collect() };
        let run = "provenir|run|p.toml|--set|stages.a.params.title=it's|--axis=a=1,2|--quiet|--profile|smoke|--set|x=1";
        let found = OverrideArguments::recorded(&command(run)).unwrap();
        assert!(found.is_given());
        assert_eq!(
            found.words().join(" "),
            r"--profile smoke --axis a=1,2 --set 'stages.a.params.title=it'\''s' --set x=1"
        );
        let plain = OverrideArguments::recorded(&command("provenir|run|--jobs|2")).unwrap();
        assert!(!plain.is_given() && plain.words().is_empty());
        assert_eq!(OverrideArguments::recorded(&command("provenir|doctor")), None);
        assert_eq!(OverrideArguments::recorded(&command("provenir|run|--gone")), None);
    }
}
