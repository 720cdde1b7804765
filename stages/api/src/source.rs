use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A parameter that names a file outside the store. Its content enters the action key; its path does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceFile(pub Utf8PathBuf);

impl SourceFile {
    /// The `format` that marks such a parameter in a kind's JSON Schema.
    pub const FORMAT: &'static str = "source-file";

    /// The path, resolved against the manifest's folder before an execution sees it.
    pub fn path(&self) -> &Utf8Path {
        &self.0
    }
}

impl JsonSchema for SourceFile {
    fn schema_name() -> Cow<'static, str> {
        "SourceFile".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": Self::FORMAT })
    }
}
