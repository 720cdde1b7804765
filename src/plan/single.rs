use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{AnyKind, Resolved};
use serde_json::json;

use super::model::{Attempts, Cell, Plan, Publish, Stage};
use super::sources::RememberedSources;
use crate::manifest::Diagnostics;

/// A stage without inputs, for a command that needs one thing made.
pub(crate) struct Single {
    /// Its name, and that of the pipeline.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) kind: Arc<dyn AnyKind>,
    /// With what.
    pub(crate) parameters: Resolved,
    /// The output of which a copy is wanted.
    pub(crate) port: &'static str,
    /// The copy, absolute.
    pub(crate) out: Utf8PathBuf,
}

impl Single {
    /// The plan that a manifest beside the copy with this one stage would expand to; the copy stands for the manifest.
    pub(crate) fn plan(self) -> Plan {
        let folder = self.out.parent().unwrap_or(Utf8Path::new("/")).to_owned();
        let file: Utf8PathBuf = self.out.file_name().unwrap_or_default().into();
        let resolved = json!({
            "format": crate::manifest::FORMAT,
            "pipeline": { "name": self.name },
            "stages": { self.name: {
                "kind": self.kind.name(),
                "params": self.parameters.full,
                "publish": { self.port: file },
            } },
        });
        let publish = Publish {
            port: self.port,
            path: file,
        };
        Plan {
            pipeline: self.name.to_owned(),
            manifest: self.out,
            bases: Vec::new(),
            folder,
            platform: None,
            stages: vec![Stage {
                name: self.name.to_owned(),
                place: None,
                outputs: self.kind.outputs().into(),
                kind: self.kind,
                axes: Vec::new(),
                inputs: Vec::new(),
                attempts: Attempts::default(),
                volatile: false,
                cells: 0..1,
            }],
            cells: vec![Cell {
                stage: 0,
                labels: Vec::new(),
                parameters: Arc::new(self.parameters),
                inputs: Vec::new(),
                publish: vec![publish],
            }],
            resolved,
            gone: RememberedSources::new(),
            warnings: Diagnostics::none(),
        }
    }
}
