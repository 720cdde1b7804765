//! Manifests written from the language's own grammar, so that many of them are right and the others nearly so.

use arbitrary::{Result, Unstructured};
use provenir::manifest::Overrides;

/// A kind: name, parameters that it needs, further ones, outputs.
struct Kind {
    name: &'static str,
    needed: &'static [(&'static str, &'static str)],
    further: &'static [&'static str],
    outputs: &'static [&'static str],
    /// Ports, whether each takes many, and what fits there.
    inputs: &'static [(&'static str, bool, &'static [&'static str])],
}

const NUMBERS: &[&str] = &["noop.sum", "team.sum", "clock.sum"];
const DEMOS: &[&str] = &[
    "collect.demos",
    "corrupt.demos",
    "split.train",
    "split.validation",
];
const TABLES: &[&str] = &[
    "evaluate.trials",
    "evaluate.summary",
    "collect.episodes",
    "train.history",
    "diagnose.diagnosis",
    "diagnose.curve",
    "noop.sum",
];

const KINDS: [Kind; 9] = [
    Kind {
        name: "noop",
        needed: &[],
        further: &["value", "file"],
        outputs: &["sum"],
        inputs: &[("one", false, NUMBERS), ("many", true, NUMBERS)],
    },
    Kind {
        name: "team",
        needed: &[("team", "\"t\"")],
        further: &["value", "seconds", "dies"],
        outputs: &["sum"],
        inputs: &[("one", false, NUMBERS), ("many", true, NUMBERS)],
    },
    Kind {
        name: "clock",
        needed: &[],
        further: &[],
        outputs: &["sum"],
        inputs: &[("one", false, NUMBERS), ("many", true, NUMBERS)],
    },
    Kind {
        name: "collect",
        needed: &[
            ("env", "\"hopper\""),
            ("expert", "\"expert.parquet\""),
            ("samples", "1000"),
        ],
        further: &["seed", "episodes", "activation", "time_feature"],
        outputs: &["demos", "episodes"],
        inputs: &[("expert", false, &["train.policy"])],
    },
    Kind {
        name: "corrupt",
        needed: &[("outlier", "\"boundary\""), ("fraction", "0.1")],
        further: &["seed", "placement", "constant", "noise", "delay", "sensors"],
        outputs: &["demos", "mask", "clean"],
        inputs: &[("demos", false, DEMOS), ("weaker", false, DEMOS)],
    },
    Kind {
        name: "split",
        needed: &[("samples", "500")],
        further: &["seed", "validation"],
        outputs: &["train", "validation"],
        inputs: &[("demos", false, DEMOS)],
    },
    Kind {
        name: "train",
        needed: &[("method", "\"bc\"")],
        further: &[
            "seed",
            "hidden",
            "epochs",
            "learning_rate",
            "batch",
            "rbc",
            "loss",
            "checkpoint_every",
        ],
        outputs: &["policy", "history", "trust", "timing"],
        inputs: &[("demos", false, DEMOS), ("validation", false, DEMOS)],
    },
    Kind {
        name: "evaluate",
        needed: &[("env", "\"hopper\"")],
        further: &["seed", "trials", "discount"],
        outputs: &["trials", "summary"],
        inputs: &[
            ("policy", false, &["train.policy"]),
            ("expert", false, &["collect.episodes"]),
        ],
    },
    Kind {
        name: "plot",
        needed: &[("x", "\"a0\""), ("y", "\"return\"")],
        further: &[
            "series",
            "columns",
            "rows",
            "filter",
            "statistic",
            "band",
            "order",
            "reference",
            "x_scale",
            "size",
        ],
        outputs: &["svg", "png", "pdf", "data"],
        inputs: &[("table", true, TABLES)],
    },
];

const VALUES: [&str; 34] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.0",
    "-0.0",
    "0.1",
    "0.5",
    "1e-3",
    "1e300",
    "inf",
    "nan",
    "true",
    "false",
    "9223372036854775807",
    "\"\"",
    "\"bc\"",
    "\"rbc\"",
    "\"noisy-bc\"",
    "\"boundary\"",
    "\"uniform\"",
    "\"hopper\"",
    "\"ant\"",
    "\"expert.parquet\"",
    "\"a0\"",
    "\"a1\"",
    "\"return\"",
    "[1, 2]",
    "[]",
    "{}",
    "{ objective = \"min-max\" }",
    "\"$${a0}\"",
    "{ name = \"n\", f = 1 }",
];

const AXIS_VALUES: [&str; 16] = [
    "0",
    "1",
    "2",
    "0.0",
    "0.05",
    "0.1",
    "1e-3",
    "\"bc\"",
    "\"rbc\"",
    "\"hopper\"",
    "\"ant\"",
    "\"boundary\"",
    "true",
    "{ name = \"x\", f = 1 }",
    "{ name = \"y\", f = 2.5 }",
    "\"\u{430}\"",
];

/// A manifest in parts that may stand in any order.
#[derive(Debug)]
pub struct Text {
    head: String,
    axes: Vec<String>,
    stages: Vec<String>,
    tail: String,
}

impl Text {
    /// As it was written.
    pub fn forwards(&self) -> String {
        self.joined(self.axes.iter(), self.stages.iter())
    }

    /// Axes and stages in the opposite order.
    pub fn backwards(&self) -> String {
        self.joined(self.axes.iter().rev(), self.stages.iter().rev())
    }

    fn joined<'a>(
        &self,
        axes: impl Iterator<Item = &'a String>,
        stages: impl Iterator<Item = &'a String>,
    ) -> String {
        let axes: String = axes.map(String::as_str).collect();
        let stages: String = stages.map(String::as_str).collect();
        format!("{}[axes]\n{axes}{stages}{}", self.head, self.tail)
    }
}

/// Writes a manifest, and options that may fit it.
pub fn pipeline(u: &mut Unstructured<'_>) -> Result<(Text, Overrides)> {
    let axis_count = u.int_in_range(0..=3_usize)?;
    let mut axes = Vec::new();
    for axis in 0..axis_count {
        axes.push(format!("a{axis} = [{}]\n", values(u)?));
    }
    let stage_count = u.int_in_range(1..=7_usize)?;
    let mut kinds: Vec<usize> = Vec::new();
    let mut stages = Vec::new();
    for _ in 0..stage_count {
        kinds.push(u.choose_index(KINDS.len())?);
        stages.push(stage(u, &kinds, axis_count)?);
    }
    let mut head = "format = 1\n".to_owned();
    if u.ratio(1, 4)? {
        head += &format!("exclude = [{}]\n", point(u, axis_count)?);
    }
    head += "[pipeline]\nname = \"p\"\n";
    let mut overrides = Overrides::default();
    let mut tail = String::new();
    if u.ratio(1, 3)? {
        tail += "[profiles.q]\n";
        if axis_count > 0 && u.arbitrary()? {
            tail += &format!(
                "axes = {{ a{} = [{}] }}\n",
                u.choose_index(axis_count)?,
                values(u)?
            );
        }
        if u.arbitrary()? {
            let stage = u.choose_index(stage_count)?;
            tail += &format!(
                "params = {{ s{stage} = {{ {} }} }}\n",
                parameter(u, &KINDS[kinds[stage]], axis_count)?
            );
        }
        if u.ratio(2, 3)? {
            overrides.profile = Some("q".to_owned());
        }
    }
    if axis_count > 0 && u.ratio(1, 4)? {
        overrides.axes.push(format!(
            "a{}={}",
            u.choose_index(axis_count)?,
            values(u)?.replace('"', "")
        ));
    }
    if u.ratio(1, 4)? {
        let stage = u.choose_index(stage_count)?;
        let parameter = parameter(u, &KINDS[kinds[stage]], axis_count)?;
        overrides.set.push(format!(
            "stages.s{stage}.params.{}",
            parameter.replace(" = ", "=")
        ));
    }
    if u.ratio(1, 4)? {
        overrides.only.push(format!("s{}", u.choose_index(stage_count)?));
    }
    let text = Text {
        head,
        axes,
        stages,
        tail,
    };
    Ok((text, overrides))
}

fn values(u: &mut Unstructured<'_>) -> Result<String> {
    let mut values = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        values.push(*u.choose(&AXIS_VALUES)?);
    }
    Ok(values.join(", "))
}

/// `{ a0 = 1, a2 = [0.0, 0.1] }`
fn point(u: &mut Unstructured<'_>, axis_count: usize) -> Result<String> {
    let mut fixed = Vec::new();
    for axis in 0..axis_count {
        if u.arbitrary()? {
            let value = *u.choose(&AXIS_VALUES)?;
            fixed.push(if u.ratio(1, 4)? {
                format!("a{axis} = [{value}, {}]", u.choose(&AXIS_VALUES)?)
            } else {
                format!("a{axis} = {value}")
            });
        }
    }
    Ok(format!("{{ {} }}", fixed.join(", ")))
}

/// `name = value`, where the value may be a reference.
fn parameter(u: &mut Unstructured<'_>, kind: &Kind, axis_count: usize) -> Result<String> {
    let needed = kind.needed.iter().map(|(name, _)| *name);
    let names: Vec<&str> = needed.chain(kind.further.iter().copied()).collect();
    let name = if names.is_empty() {
        "value"
    } else {
        *u.choose(&names)?
    };
    Ok(format!("{name} = {}", value(u, axis_count)?))
}

fn value(u: &mut Unstructured<'_>, axis_count: usize) -> Result<String> {
    if axis_count > 0 && u.arbitrary()? {
        let axis = u.choose_index(axis_count)?;
        return Ok(match u.int_in_range(0..=5)? {
            0 => format!("\"x-${{a{axis}}}\""),
            1 => format!("\"${{a{axis}.f}}\""),
            2 => format!("[\"${{a{axis}}}\", 1]"),
            _ => format!("\"${{a{axis}}}\""),
        });
    }
    Ok((*u.choose(&VALUES)?).to_owned())
}

/// The last of the stages, whose kinds these are.
fn stage(u: &mut Unstructured<'_>, kinds: &[usize], axis_count: usize) -> Result<String> {
    let number = kinds.len() - 1;
    let kind = &KINDS[kinds[number]];
    let mut text = format!("[stages.s{number}]\nkind = \"{}\"\n", kind.name);
    let mut wires = Vec::new();
    for (port, many, fitting) in kind.inputs {
        // A stage before this one that gives what the port takes, if there is one.
        let mut able = Vec::new();
        for (stage, other) in kinds[..number].iter().enumerate() {
            for output in KINDS[*other].outputs {
                if fitting.contains(&format!("{}.{output}", KINDS[*other].name).as_str()) {
                    able.push((stage, *output));
                }
            }
        }
        if u.ratio(1, 24)? {
            let (stage, other) = (u.choose_index(number + 2)?, u.choose_index(KINDS.len())?);
            wires.push(format!(
                "{port} = \"s{stage}.{}\"",
                u.choose(KINDS[other].outputs)?
            ));
        } else if !able.is_empty() && u.ratio(7, 8)? {
            let mut items = Vec::new();
            for _ in 0..if *many { u.int_in_range(1..=2)? } else { 1 } {
                let (stage, output) = *u.choose(&able)?;
                items.push(match u.int_in_range(0..=3)? {
                    0 => format!(
                        "{{ stage = \"s{stage}\", port = \"{output}\", at = {} }}",
                        point(u, axis_count)?
                    ),
                    1 if *many => format!("{{ stage = \"s{stage}.{output}\", as = \"m{}\" }}", items.len()),
                    _ => format!("\"s{stage}.{output}\""),
                });
            }
            wires.push(match &items[..] {
                [one] => format!("{port} = {one}"),
                _ => format!("{port} = [{}]", items.join(", ")),
            });
        }
    }
    if !wires.is_empty() {
        text += &format!("inputs = {{ {} }}\n", wires.join(", "));
    }
    let mut parameters: Vec<(String, String)> = kind
        .needed
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    for _ in 0..u.int_in_range(0..=2)? {
        let given = parameter(u, kind, axis_count)?;
        let (name, value) = given.split_once(" = ").unwrap_or(("value", "1"));
        parameters.retain(|(known, _)| known != name);
        parameters.push((name.to_owned(), value.to_owned()));
    }
    let parameters: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    text += &format!("params = {{ {} }}\n", parameters.join(", "));
    if axis_count > 0 && u.ratio(1, 6)? {
        text += &format!("over = [\"a{}\"]\n", u.choose_index(axis_count)?);
    }
    if u.ratio(1, 8)? {
        text += &format!("exclude = [{}]\n", point(u, axis_count)?);
    }
    if u.ratio(1, 6)? {
        let output = *u.choose(kind.outputs)?;
        let axis = u.int_in_range(0..=3)?;
        let pattern = *u.choose(&[
            "out/${stage}.parquet",
            "${stage}-A.parquet",
            "x.svg",
            "../x.parquet",
            "${stage}/A/${A}.png",
            "/x.parquet",
        ])?;
        text += &format!(
            "publish = {{ {output} = \"{}\" }}\n",
            pattern.replace('A', &format!("a{axis}"))
        );
    }
    if u.ratio(1, 8)? {
        text += u.choose(&[
            "timeout = \"90s\"\n",
            "retries = 3\n",
            "resources = { cores = 2 }\n",
            "timeout = 0\n",
        ])?;
    }
    if u.ratio(1, 5)? {
        let given = parameter(u, kind, axis_count)?;
        text += &format!(
            "[[stages.s{number}.override]]\nwhere = {}\nparams = {{ {given} }}\n",
            point(u, axis_count)?
        );
    }
    Ok(text)
}
