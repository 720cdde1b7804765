use std::any::type_name;
use std::marker::PhantomData;
use std::sync::OnceLock;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::port::{InputPort, OutputPort, Ports, TableSchema};
use crate::{Label, Problem, SourceFile, schema};

/// The parameters of a kind.
///
/// Every field is documented and ranged through `JsonSchema`; every struct denies unknown fields; a field with a serde
/// default carries that default in its schema. The schema is what a manifest is checked against, so whatever passes
/// it must deserialize.
pub trait Parameters: Serialize + DeserializeOwned + JsonSchema {
    /// What is wrong with a combination of fields that are each in range.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// JSON pointers of the fields that have no effect given the others (the settings of a method that is not the
    /// chosen one); they stay out of the action key.
    fn irrelevant(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// How far two executions of the same action agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Determinism {
    /// To the bit, on every platform.
    Exact,
    /// To the bit on one numeric platform; elsewhere within the tolerance of its goldens.
    Platform,
}

/// What an execution occupies while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Processor cores.
    pub cores: u32,
    /// Memory in MiB, a cautious estimate.
    pub memory: u64,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            cores: 1,
            memory: 512,
        }
    }
}

/// A number that is raised when the results of a kind, or of machinery it uses, change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// The kind's own name, or that of a piece of machinery (`sim`, `nn`, `table`).
    pub part: &'static str,
    /// The number.
    pub number: u32,
}

/// The declaration of what a stage does: all that the command knows of a kind.
pub trait Kind: Send + Sync + 'static {
    /// Its parameters.
    type Parameters: Parameters;
    /// Name, as written after `kind =`.
    const NAME: &'static str;
    /// One sentence for people.
    const SUMMARY: &'static str;
    /// Its own revision first, then those of the machinery it uses.
    const REVISIONS: &'static [Revision];
    /// How far its executions agree.
    const DETERMINISM: Determinism;
    /// Outputs that hold privileged information: what a study knows and no learner could (which samples were corrupted, and
    /// what they were). They, and whatever is made from them, can be wired to [`Kind::PRIVILEGED_INPUTS`] alone.
    const PRIVILEGED_OUTPUTS: &'static [&'static str] = &[];
    /// Inputs that take privileged information; what the kind then gives is privileged, too. A kind that learns, or prepares
    /// what is learned from, has none.
    const PRIVILEGED_INPUTS: &'static [&'static str] = &[];

    /// Whether the ports of a stage are its manifest's to declare: its inputs are those that it wires, its outputs those that
    /// its parameters declare ([`Kind::ports`]). Then the kind has none of its own.
    const DECLARES_PORTS: bool = false;

    /// Its inputs; names are unique.
    fn inputs() -> Vec<InputPort>;

    /// Its outputs; names are unique; the first is the one meant where a manifest names the stage alone.
    fn outputs() -> Vec<OutputPort>;

    /// The ports of a stage to whose inputs of these names something is wired, and whose parameters are these: as they are
    /// written, whether or not they pass any check. What cannot be understood declares nothing. All cells of a stage have
    /// the same.
    fn ports(_parameters: &Value, _wired: &[&str]) -> Ports {
        Ports {
            inputs: Self::inputs(),
            outputs: Self::outputs(),
        }
    }

    /// How far executions with these parameters agree.
    fn determinism(_: &Self::Parameters) -> Determinism {
        Self::DETERMINISM
    }

    /// What a cell with these parameters occupies.
    fn resources(_: &Self::Parameters) -> Resources {
        Resources::default()
    }

    /// How many cores beyond those that it occupies a cell with these parameters can put to use. When it starts it is given
    /// as many of them as nothing else is ready to take; what it gives must not depend on how many those are.
    fn spare_cores(_: &Self::Parameters) -> u32 {
        0
    }

    /// Which other cells a cell with these parameters can be executed together with, by one worker; nothing where it gains
    /// nothing by company. What a cell gives on a processor must not depend on its company.
    fn group(_: &Self::Parameters) -> Option<Group> {
        None
    }

    /// Whether a cell with these parameters is executed while nothing else of the run is, whatever room there is: it measures
    /// something that others at work on the same machine would change.
    fn exclusive(_: &Self::Parameters) -> bool {
        false
    }

    /// What is known, before anything runs, of what a cell with these parameters gives and needs. What is said must hold: a
    /// plan in which something else arrives than is needed is refused.
    fn facts(_: &Self::Parameters) -> Facts {
        Facts::default()
    }

    /// What is wrong with these parameters given what is wired: ports that are wired, and for each the schema of the
    /// tables that will arrive with the labels of gathered axes as further columns; a file has no columns.
    fn check(_: &Self::Parameters, _: &[(&str, TableSchema)]) -> Vec<Problem> {
        Vec::new()
    }
}

/// Cells that can be executed together: those of a kind that agree in all parameters but some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// JSON pointers of the parameters in which they may differ.
    pub own: &'static [&'static str],
    /// The most that gain by being executed together on a processor, at least 1.
    pub most: u32,
    /// The most that gain by it on an accelerator, at least 1.
    pub most_accelerated: u32,
    /// Memory in MiB that each further cell takes beside the first.
    pub memory: u64,
}

/// What is known of the artifacts that pass through a cell, as far as its parameters tell before anything runs.
///
/// Facts have names that kinds agree on, such as `rows` and `environment`; messages show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Output port, name and value of what is known of outputs.
    pub gives: Vec<(&'static str, &'static str, Known)>,
    /// Input port, name and value of what must be so of inputs; the port takes one artifact.
    pub needs: Vec<(&'static str, &'static str, Need)>,
    /// Output port, which of the extensions that it admits its file may have, and the JSON pointer of the parameter that says
    /// so.
    pub files: Vec<(&'static str, &'static [&'static str], &'static str)>,
}

impl Facts {
    /// Adds that a fact is known of these outputs.
    #[must_use]
    pub fn give<const N: usize>(
        mut self,
        fact: &'static str,
        ports: [&'static str; N],
        known: &Known,
    ) -> Self {
        self.gives.extend(ports.map(|port| (port, fact, known.clone())));
        self
    }

    /// Adds that the file of an output has one of these extensions, as the parameter at the JSON pointer says.
    #[must_use]
    pub fn file(
        mut self,
        port: &'static str,
        extensions: &'static [&'static str],
        pointer: &'static str,
    ) -> Self {
        self.files.push((port, extensions, pointer));
        self
    }

    /// Adds that something must be so of an input.
    #[must_use]
    pub fn need(mut self, fact: &'static str, port: &'static str, need: Need) -> Self {
        self.needs.push((port, fact, need));
        self
    }
}

/// What is known of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// This, as the parameter at the JSON pointer says.
    Given(Label, &'static str),
    /// Whatever it is of the artifact at this input port, which takes one.
    Of(&'static str),
}

/// What must be so of an input: otherwise the cell cannot do what its parameters ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A number that is at least so large.
    AtLeast {
        /// The least number.
        least: u64,
        /// JSON pointer of the parameter that asks for it.
        pointer: &'static str,
        /// JSON pointers of further parameters that the number depends on.
        beside: &'static [&'static str],
        /// What the number comes from, where it is not the parameter's value: `4 samples beside a half`.
        reason: Option<String>,
    },
    /// The value of the parameter at the JSON pointer.
    Equal(Label, &'static str),
    /// The same as at this other input port.
    Alike(&'static str),
}

/// A source file named by a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// JSON pointer of the parameter.
    pub pointer: String,
    /// The path as written.
    pub path: Utf8PathBuf,
}

/// Parameters that passed every check.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// All of them, defaults filled in.
    pub full: Value,
    /// Those that enter the action key: relevant, not equal to their default, source files left out (their content
    /// enters instead).
    pub canonical: Value,
    /// The source files that matter.
    pub sources: Vec<Source>,
    /// How far executions agree.
    pub determinism: Determinism,
    /// What a cell occupies.
    pub resources: Resources,
    /// How many cores beyond those it can put to use.
    pub spare_cores: u32,
    /// Whether nothing else of the run is executed while it is.
    pub exclusive: bool,
    /// What is known of what it gives and needs.
    pub facts: Facts,
    /// Which cells it can be executed together with.
    pub group: Option<Group>,
}

/// A [`Kind`] behind a pointer.
pub trait AnyKind: Send + Sync {
    /// [`Kind::NAME`].
    fn name(&self) -> &'static str;
    /// [`Kind::SUMMARY`].
    fn summary(&self) -> &'static str;
    /// [`Kind::REVISIONS`].
    fn revisions(&self) -> &'static [Revision];
    /// [`Kind::DECLARES_PORTS`].
    fn declares_ports(&self) -> bool;
    /// [`Kind::ports`].
    fn ports(&self, parameters: &Value, wired: &[&str]) -> Ports;
    /// [`Kind::PRIVILEGED_OUTPUTS`].
    fn privileged_outputs(&self) -> &'static [&'static str];
    /// [`Kind::PRIVILEGED_INPUTS`].
    fn privileged_inputs(&self) -> &'static [&'static str];
    /// [`Kind::inputs`].
    fn inputs(&self) -> Vec<InputPort>;
    /// [`Kind::outputs`].
    fn outputs(&self) -> Vec<OutputPort>;
    /// The JSON Schema of its parameters, references resolved in place.
    fn schema(&self) -> &Value;
    /// Checks parameters against the schema and against each other. `Err` holds every problem found.
    fn resolve(&self, parameters: &Value) -> Result<Resolved, Vec<Problem>>;
    /// [`Kind::check`], for parameters that [`AnyKind::resolve`] accepted.
    fn check(&self, full: &Value, wired: &[(&str, TableSchema)]) -> Vec<Problem>;
}

/// Puts a kind behind a pointer.
pub fn erase<K: Kind>() -> Box<dyn AnyKind> {
    Box::new(Erased::<K> {
        schema: OnceLock::new(),
        kind: PhantomData,
    })
}

struct Erased<K> {
    schema: OnceLock<Value>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> AnyKind for Erased<K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn summary(&self) -> &'static str {
        K::SUMMARY
    }

    fn revisions(&self) -> &'static [Revision] {
        K::REVISIONS
    }

    fn declares_ports(&self) -> bool {
        K::DECLARES_PORTS
    }

    fn ports(&self, parameters: &Value, wired: &[&str]) -> Ports {
        K::ports(parameters, wired)
    }

    fn privileged_outputs(&self) -> &'static [&'static str] {
        K::PRIVILEGED_OUTPUTS
    }

    fn privileged_inputs(&self) -> &'static [&'static str] {
        K::PRIVILEGED_INPUTS
    }

    fn inputs(&self) -> Vec<InputPort> {
        K::inputs()
    }

    fn outputs(&self) -> Vec<OutputPort> {
        K::outputs()
    }

    fn schema(&self) -> &Value {
        self.schema.get_or_init(|| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            });
            settings
                .into_generator()
                .into_root_schema_for::<K::Parameters>()
                .to_value()
        })
    }

    fn resolve(&self, parameters: &Value) -> Result<Resolved, Vec<Problem>> {
        let problems = schema::check(self.schema(), parameters);
        if !problems.is_empty() {
            return Err(problems);
        }
        let typed: K::Parameters = typed(parameters)?;
        let problems = typed.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let full = serde_json::to_value(&typed).map_err(|error| vec![Problem::new("", error.to_string())])?;
        let mut relevant = full.clone();
        for pointer in typed.irrelevant() {
            schema::remove(&mut relevant, pointer);
        }
        let sources = schema::sources(self.schema(), &relevant);
        let mut canonical = relevant;
        for source in &sources {
            schema::remove(&mut canonical, &source.pointer);
        }
        schema::remove_defaults(self.schema(), &mut canonical);
        Ok(Resolved {
            full,
            canonical,
            sources,
            determinism: K::determinism(&typed),
            resources: K::resources(&typed),
            spare_cores: K::spare_cores(&typed),
            exclusive: K::exclusive(&typed),
            facts: K::facts(&typed),
            group: K::group(&typed),
        })
    }

    fn check(&self, full: &Value, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        match typed::<K::Parameters>(full) {
            Ok(parameters) => K::check(&parameters, wired),
            Err(problems) => problems,
        }
    }
}

fn typed<P: Parameters>(value: &Value) -> Result<P, Vec<Problem>> {
    P::deserialize(value).map_err(|error| {
        vec![Problem::new(
            "",
            format!("{error} (the schema of `{}` accepted it)", type_name::<P>()),
        )]
    })
}

/// Whether a parameter of that schema is a source file.
pub(crate) fn is_source(schema: &Value) -> bool {
    schema.get("format").and_then(Value::as_str) == Some(SourceFile::FORMAT)
}
