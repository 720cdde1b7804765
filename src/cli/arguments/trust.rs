//! Arguments of the commands that look at what was run and kept.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{ManifestArguments, StoreArguments, path};
use crate::cli::measure;

pub(super) const GC: &str = "\
What is kept: whatever is pinned (`provenir pin`); the results of the last 5 runs of every manifest (--keep-runs), of the \
last 5 that finished all that it has (without --only and --axis), and of runs under way; whatever was written in the last 7 days (--grace); what a published figure that is still there shows; and all that \
those were computed from. Records and logs of runs always stay, so that `provenir why` can explain later.";

pub(super) const AUDIT_USAGE: &str = "provenir audit <--cell <CELL>|--sample <N>|--all> [OPTIONS] [MANIFEST]";

pub(super) const AUDIT: &str = "\
One of --cell, --sample and --all says what is computed again: all of it may take as long as it took at first.";

pub(super) const RUNS: &str = "\
How a run is named: the beginning of its name, its last four characters, a tag, or `last`. `last` is the latest run of a \
manifest, whichever that was; where the latest found all as an earlier run had left it, that earlier run is meant. A `render` is no \
run of a manifest: `last` means one only where there is nothing else.

In the column git, `dirty` says that tracked files differed from the commit, and its digest tells one such state from another: it is \
BLAKE3 of what `git diff HEAD --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames --src-prefix=a/ \
--dst-prefix=b/` prints. `untracked` names files of the run that git does not track.";

#[derive(Debug, Args)]
pub(in crate::cli) struct WhyArguments {
    /// The cell, such as 'policy[epsilon=0.1, method=rbc]'; where axes are left out, every cell that is meant.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) cell: String,
    #[command(flatten)]
    pub(in crate::cli) manifest: ManifestArguments,
    /// Print a list of JSON objects.
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LineageArguments {
    /// A cell such as 'policy[epsilon=0.1, method=rbc]'; the beginning of an object's digest or of an action key; or a
    /// file, such as a figure: it says itself where it comes from.
    #[arg(value_name = "CELL|DIGEST|FILE", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) what: String,
    #[command(flatten)]
    pub(in crate::cli) manifest: ManifestArguments,
    /// Trees of words, an object of JSON with all that is known, or a graph for Graphviz.
    #[arg(long, value_enum, default_value_t = LineageFormat::Text)]
    pub(in crate::cli) format: LineageFormat,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub(in crate::cli) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LineageFormat {
    Text,
    Json,
    Dot,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct RunsArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: Option<RunsAction>,
    /// Only those with this tag.
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) tag: Option<String>,
    /// Only those of pipelines of this name.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) pipeline: Option<String>,
    /// Only those of this manifest.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(in crate::cli) manifest: Option<Utf8PathBuf>,
    /// Only those that did not do all that they should.
    #[arg(long)]
    pub(in crate::cli) failed: bool,
    /// So many, the latest first.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = measure::parse_count)]
    pub(in crate::cli) limit: usize,
    /// Print a list of JSON objects.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) store: StoreArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RunsAction {
    /// Give a run tags, by which it can be found and named.
    Tag {
        /// The beginning of its name, its last four characters, a tag, or `last`.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        run: String,
        /// The tags.
        #[arg(required = true, value_name = "TAG")]
        tags: Vec<String>,
        /// Take them away instead.
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        store: StoreArguments,
    },
    /// Note something about a run; "" removes the note.
    Note {
        /// The beginning of its name, its last four characters, a tag, or `last`.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        run: String,
        /// What is to be remembered.
        text: String,
        #[command(flatten)]
        store: StoreArguments,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArguments {
    /// The run before: the beginning of its name, its last four characters, a tag, or `last` (see `provenir runs --help`).
    #[arg(value_name = "RUN", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) old: String,
    /// The run after.
    #[arg(value_name = "RUN", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) new: String,
    /// List every cell and every metric that differs, however many.
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Print an object of JSON, with every cell and every metric.
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) store: StoreArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AuditArguments {
    #[command(flatten)]
    pub(in crate::cli) manifest: ManifestArguments,
    /// This cell and all that it was computed from, such as 'figure' or 'policy[method=rbc]'; may be repeated.
    #[arg(long, value_name = "CELL")]
    pub(in crate::cli) cell: Vec<String>,
    /// So many cells, each from what the store has of its inputs.
    #[arg(long, value_name = "N", conflicts_with_all = ["cell", "all"], value_parser = measure::parse_count)]
    pub(in crate::cli) sample: Option<usize>,
    /// Another seed takes another sample.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) seed: u64,
    /// Every cell that the store has the result of.
    #[arg(long, conflicts_with = "cell")]
    pub(in crate::cli) all: bool,
    /// On another platform than the one that gave a result, hold numbers that simulation or training gives to this: the largest
    /// difference, relative to the greatest magnitude of its column or tensor [default: tell such differences, judge none]. On the
    /// platform that gave it, a result is to come out the same to the bit, whatever the tolerance.
    #[arg(long, value_name = "SHARE", value_parser = measure::parse_share)]
    pub(in crate::cli) tolerance: Option<f64>,
    /// Processor cores that cells may occupy together [default: all].
    #[arg(long, short, value_name = "N", value_parser = measure::parse_jobs)]
    pub(in crate::cli) jobs: Option<u32>,
    /// Compute there, in a new folder, and leave what comes out, with the logs [default: in the store's folder for temporary
    /// files, removed at the end].
    #[arg(long, value_name = "FOLDER", value_parser = path())]
    pub(in crate::cli) scratch: Option<Utf8PathBuf>,
    /// Print an object of JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Say nothing of what happens meanwhile but what went wrong.
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArguments {
    /// Only these: a published file, a file of the store, or the beginning of an object's digest or of an action key
    /// [default: everything].
    #[arg(value_name = "PATH|DIGEST", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) what: Vec<String>,
    /// Take damaged objects, and results that cannot be read, out of the store, so that the next run computes them again.
    #[arg(long)]
    pub(in crate::cli) discard: bool,
    /// Print an object of JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) store: StoreArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct GcArguments {
    /// Remove it. Without this, nothing is removed.
    #[arg(long, visible_alias = "delete")]
    pub(in crate::cli) yes: bool,
    /// Keep the results of so many of the latest runs of every manifest, and of so many that finished all that it has.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(in crate::cli) keep_runs: usize,
    /// Keep what was written in this time, such as 30m, 12h or 7d; 0 for none.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = measure::parse_time)]
    pub(in crate::cli) grace: Duration,
    /// Print an object of JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) store: StoreArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PinArguments {
    /// A run (the beginning of its name, its last four characters, a tag, or `last`); a cell such as
    /// 'policy[method=rbc]', several where axes are left out; or the beginning of an action key.
    #[arg(value_name = "RUN|CELL", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) what: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) manifest: ManifestArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UnpinArguments {
    /// What `provenir pin` lists: a run; a cell, several where axes are left out; or the beginning of an action key.
    #[arg(value_name = "RUN|CELL", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) what: String,
    /// The manifest that the cell is of; whatever options it was pinned with do not matter.
    #[arg(default_value = "pipeline.toml", value_parser = path())]
    pub(in crate::cli) manifest: Utf8PathBuf,
    #[command(flatten)]
    pub(in crate::cli) store: StoreArguments,
}
