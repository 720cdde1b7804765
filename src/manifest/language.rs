//! The JSON Schema of manifests, for editors and other tools.

use provenir_api::port::Arity;
use provenir_api::{AnyKind, SourceFile};
use serde_json::{Map, Value, json};

use super::load::FORMAT;
use crate::registry::Registry;

/// A text that refers to an axis, wherever another type is wanted.
const REFERENCE: &str = r"\$\{[^}]+\}";
/// Names of pipelines, axes and stages.
const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";

/// The JSON Schema (draft 2020-12) of the whole language, with the parameters, inputs and outputs of every kind.
///
/// It accepts whatever [`load`](super::load) accepts, and leaves to it what a schema cannot say: what names refer to,
/// what is missing once everything was merged, and values that axes stand for.
pub fn language_schema(registry: &Registry) -> Value {
    let kinds: Vec<Value> = registry.kinds().map(|kind| stage(Some(&**kind))).collect();
    let stages: Vec<Value> = kinds.into_iter().chain([stage(None)]).collect();
    let mut definitions = definitions();
    for kind in registry.kinds() {
        definitions[parameters_of(&**kind)] = with_references(kind.schema());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Provenir manifest",
        "type": "object",
        "additionalProperties": false,
        "required": ["format"],
        "properties": {
            "format": {
                "description": "Version of this language.",
                "const": FORMAT,
            },
            "extends": {
                "description": "Another manifest, relative to this one's folder, that this one is laid over.",
                "type": "string",
            },
            "pipeline": {
                "description": "What the pipeline is.",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "name": { "description": "Its name.", "type": "string", "pattern": NAME },
                    "description": { "description": "One sentence for people.", "type": "string" },
                },
            },
            "axes": {
                "description": "Named lists of values that stages may vary over.",
                "type": "object",
                "propertyNames": { "pattern": NAME, "not": { "enum": ["stage", "pipeline", "source"] } },
                "additionalProperties": { "$ref": "#/$defs/axis" },
            },
            "exclude": { "$ref": "#/$defs/exclude" },
            "stages": {
                "description": "The nodes of the graph.",
                "type": "object",
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "oneOf": stages },
            },
            "profiles": {
                "description": "Named variants of the pipeline, chosen with `--profile`.",
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/profile" },
            },
        },
        "$defs": definitions,
    })
}

fn definitions() -> Value {
    json!({
        "label": { "type": ["string", "number", "boolean"] },
        "axis": {
            "type": "array",
            "minItems": 1,
            "items": { "anyOf": [
                { "$ref": "#/$defs/label" },
                {
                    "description": "Fields for `${AXIS.FIELD}`; the name is the label.",
                    "type": "object",
                    "required": ["name"],
                    "properties": { "name": { "type": "string", "minLength": 1 } },
                },
            ] },
        },
        "selector": {
            "description": "Points of axes: a value or several for each axis.",
            "type": "object",
            "additionalProperties": { "anyOf": [
                { "$ref": "#/$defs/label" },
                { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/label" } },
            ] },
        },
        "exclude": {
            "description": "Cells to drop: those of stages that vary over all of an entry's axes, where the values match.",
            "type": "array",
            "items": { "$ref": "#/$defs/selector", "minProperties": 1 },
        },
        "input": {
            "anyOf": [
                { "description": "`stage` or `stage.port`.", "type": "string" },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["stage"],
                    "properties": {
                        "stage": { "description": "`stage` or `stage.port`.", "type": "string" },
                        "port": { "description": "The output of that stage.", "type": "string" },
                        "at": {
                            "description": "The slice to take: a value for each axis that is fixed.",
                            "type": "object",
                            "additionalProperties": { "$ref": "#/$defs/label" },
                        },
                        "as": {
                            "description": "What a union calls it in its column `source`.",
                            "type": "string",
                            "minLength": 1,
                        },
                    },
                },
            ],
        },
        "inputs": {
            "anyOf": [
                { "$ref": "#/$defs/input" },
                {
                    "description": "A union of several, with a column `source`.",
                    "type": "array",
                    "minItems": 1,
                    "items": { "$ref": "#/$defs/input" },
                },
            ],
        },
        "path": {
            "description": "Relative to the manifest's folder, below it; `${stage}`, `${pipeline}` and `${AXIS}` are filled in.",
            "type": "string",
            "minLength": 1,
        },
        "profile": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "description": { "description": "One sentence for people.", "type": "string" },
                "axes": {
                    "description": "Values that replace those of axes.",
                    "type": "object",
                    "additionalProperties": { "$ref": "#/$defs/axis" },
                },
                "params": {
                    "description": "Parameters, by stage, that win over the stage's and its overrides'.",
                    "type": "object",
                    "additionalProperties": { "type": "object" },
                },
                "publish": {
                    "description": "Named copies, by stage, that replace the stage's.",
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": { "$ref": "#/$defs/path" },
                    },
                },
                "exclude": { "$ref": "#/$defs/exclude" },
            },
        },
    })
}

/// The name of the definition that holds the parameters of a kind.
fn parameters_of(kind: &dyn AnyKind) -> String {
    format!("parameters-of-{}", kind.name())
}

/// A stage of one kind; without a kind, what another manifest says of a stage that extends it.
fn stage(kind: Option<&dyn AnyKind>) -> Value {
    let parameters = match kind {
        Some(kind) => json!({ "$ref": format!("#/$defs/{}", parameters_of(kind)) }),
        None => json!({ "type": "object" }),
    };
    let (inputs, publish) = match kind {
        Some(kind) => (inputs(kind), publish(kind)),
        None => (
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/inputs" } }),
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/path" } }),
        ),
    };
    let mut properties = json!({
        "description": { "description": "One sentence for people.", "type": "string" },
        "inputs": inputs,
        "params": parameters,
        "over": {
            "description": "Axes to vary over beside those that the parameters name and the inputs bring.",
            "type": "array",
            "items": { "type": "string", "pattern": NAME },
        },
        "override": {
            "description": "Parameters that win where the axes match; later entries win over earlier ones.",
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["where", "params"],
                "properties": {
                    "where": { "$ref": "#/$defs/selector", "minProperties": 1 },
                    "params": parameters,
                },
            },
        },
        "exclude": { "$ref": "#/$defs/exclude" },
        "publish": publish,
        "timeout": {
            "description": "How long a cell may take before it is stopped and has failed: seconds, or a text such as \"30m\".",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 31_622_400 },
                { "type": "string", "pattern": "^[0-9]+[smhd]$" },
            ],
        },
        "retries": {
            "description": "How often a cell that failed is executed once more.",
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
        },
        "resources": {
            "description": "What a cell occupies, instead of the kind's own estimate.",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "cores": { "description": "Processor cores; spare ones are not added to them.", "type": "integer", "minimum": 1 },
                "memory": { "description": "Memory in MiB.", "type": "integer", "minimum": 1 },
            },
        },
    });
    let mut schema = json!({ "type": "object", "additionalProperties": false });
    match kind {
        Some(kind) => {
            properties["kind"] = json!({ "description": kind.summary(), "const": kind.name() });
            schema["title"] = kind.name().into();
            schema["description"] = kind.summary().into();
            schema["required"] = json!(["kind"]);
        }
        None => {
            schema["title"] = "a stage of the manifest that this one extends".into();
        }
    }
    schema["properties"] = properties;
    schema
}

fn inputs(kind: &dyn AnyKind) -> Value {
    let ports: Map<String, Value> = kind
        .inputs()
        .into_iter()
        .map(|port| {
            let wanted = match port.arity {
                Arity::One => "#/$defs/input",
                Arity::Many => "#/$defs/inputs",
            };
            (
                port.name.to_owned(),
                json!({ "description": port.doc, "$ref": wanted }),
            )
        })
        .collect();
    let further = if kind.declares_ports() {
        json!({ "$ref": "#/$defs/inputs" })
    } else {
        json!(false)
    };
    json!({
        "description": "What is wired to its ports.",
        "type": "object",
        "additionalProperties": further,
        "properties": ports,
    })
}

fn publish(kind: &dyn AnyKind) -> Value {
    let ports: Map<String, Value> = kind
        .outputs()
        .into_iter()
        .map(|port| {
            (
                port.name.to_owned(),
                json!({ "description": port.doc, "$ref": "#/$defs/path" }),
            )
        })
        .collect();
    let further = if kind.declares_ports() {
        json!({ "$ref": "#/$defs/path" })
    } else {
        json!(false)
    };
    json!({
        "description": "Named copies of its outputs.",
        "type": "object",
        "additionalProperties": further,
        "properties": ports,
    })
}

/// The schema of parameters as they stand in a manifest: any value may be a text that refers to an axis, and what is
/// required may come from an override, a profile, the command line or the manifest that this one extends.
fn with_references(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut fields = fields.clone();
    fields.remove("required");
    if fields.get("format").and_then(Value::as_str) == Some(SourceFile::FORMAT) {
        fields.remove("format");
    }
    for key in ["properties", "$defs", "patternProperties"] {
        if let Some(Value::Object(below)) = fields.get_mut(key) {
            for value in below.values_mut() {
                *value = with_references(value);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(key) {
            *below = with_references(below);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(below)) = fields.get_mut(key) {
            for value in below {
                *value = with_references(value);
            }
        }
    }
    if is_plain_text(&fields) || fields.get("properties").is_some() {
        return Value::Object(fields);
    }
    // What a person reads stays where editors look for it.
    let description = fields.remove("description");
    let default = fields.remove("default");
    let mut either = json!({
        "anyOf": [Value::Object(fields), { "type": "string", "pattern": REFERENCE }],
    });
    for (key, value) in [("description", description), ("default", default)] {
        if let Some(value) = value {
            either[key] = value;
        }
    }
    either
}

/// Whether the schema accepts every text that holds a reference anyway.
fn is_plain_text(fields: &Map<String, Value>) -> bool {
    fields.get("type").and_then(Value::as_str) == Some("string")
        && ["enum", "pattern", "const", "maxLength", "format"]
            .iter()
            .all(|key| !fields.contains_key(*key))
}
