//! The JSON Schema of the language.

use provenir::manifest::language_schema;
use serde_json::{Value, json};

use super::kinds;

/// The parameters of that kind.
fn parameters<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    let reference = stage(schema, kind)["properties"]["params"]["$ref"]
        .as_str()
        .expect("it is there");
    schema.pointer(&reference[1..]).expect("it is there")
}

/// The alternative for stages of that kind.
fn stage<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    let stages = schema["properties"]["stages"]["additionalProperties"]["oneOf"].as_array();
    stages
        .expect("it is there")
        .iter()
        .find(|stage| stage["properties"]["kind"]["const"] == kind)
        .expect("it is there")
}

#[test]
fn every_kind_is_there_with_its_parameters_and_ports() {
    let schema = language_schema(&kinds::registry());
    for kind in kinds::registry().kinds() {
        let stage = stage(&schema, kind.name());
        let known = kind.schema()["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let shown = parameters(&schema, kind.name())["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        assert_eq!(
            known.keys().collect::<Vec<_>>(),
            shown.keys().collect::<Vec<_>>(),
            "parameters of {}",
            kind.name()
        );
        let ports: Vec<&str> = kind.inputs().iter().map(|port| port.name).collect();
        let inputs = &stage["properties"]["inputs"];
        assert_eq!(
            inputs["additionalProperties"] == json!(false),
            !kind.declares_ports()
        );
        for port in ports {
            assert!(inputs["properties"].get(port).is_some(), "input {port}");
        }
        for port in kind.outputs() {
            assert!(
                stage["properties"]["publish"]["properties"]
                    .get(port.name)
                    .is_some()
            );
        }
    }
}

#[test]
fn a_number_may_be_a_reference_and_keeps_its_range_and_its_words() {
    let schema = language_schema(&kinds::registry());
    let fraction = &parameters(&schema, "refine")["properties"]["fraction"];
    assert_eq!(fraction["description"], "Share of samples.");
    assert_eq!(fraction["anyOf"][0]["maximum"], json!(0.5));
    assert_eq!(
        fraction["anyOf"][1],
        json!({"type": "string", "pattern": r"\$\{[^}]+\}"})
    );
}

#[test]
fn every_reference_within_the_schema_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let schema = language_schema(&kinds::registry());
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("it is there");
        assert!(schema.pointer(pointer).is_some(), "{reference}");
    }
}
