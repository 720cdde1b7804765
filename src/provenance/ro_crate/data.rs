use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use super::Crate;
use super::graph::{Graph, several, without_nulls};
use crate::provenance::model::{File, Output, Source};

impl Crate<'_> {
    /// Whether a file lies in the crate.
    pub(super) fn holds(&self, file: &File) -> bool {
        self.has_data && file.sha256.is_some()
    }

    /// How a file is referred to: by its place where it lies in the crate, and by its digest otherwise.
    pub(super) fn id(&self, file: &File) -> String {
        if self.holds(file) {
            file.place.to_string()
        } else {
            format!("#blake3-{}", file.blake3)
        }
    }

    /// Adds the files; says which of them lie in the crate.
    pub(super) fn add_data(&self, graph: &mut Graph) -> Vec<String> {
        let mut parts = Vec::new();
        let runs = self.provenance.runs.iter().enumerate();
        for (index, run) in runs {
            // The manifest of the run itself is the workflow, and is always there.
            if index == self.provenance.main {
                parts.insert(0, run.file.place.to_string());
            } else {
                let mut entity = self.file(&run.file, &format!("resolved manifest of run {}", run.id));
                entity["description"] =
                    "The manifest, as it was resolved, of a run whose results were taken.".into();
                graph.add(entity);
                parts.push(self.id(&run.file));
            }
        }
        let mut outputs: Vec<Vec<&Output>> = vec![Vec::new(); self.provenance.artifacts.len()];
        for output in self.provenance.cells.iter().flat_map(|cell| &cell.outputs) {
            outputs[output.artifact].push(output);
        }
        for (artifact, outputs) in self.provenance.artifacts.iter().zip(&outputs) {
            let copies = artifact.copies.iter();
            let apart: BTreeSet<&Utf8PathBuf> = copies
                .clone()
                .filter(|copy| self.holds(&copy.file))
                .map(|copy| &copy.path)
                .collect();
            let published = outputs.iter().flat_map(|output| &output.published);
            let published = published.filter(|path| !apart.contains(path));
            let entity = self.artifact(&artifact.file, &artifact.name, outputs, published);
            graph.add(entity);
            parts.push(self.id(&artifact.file));
            for copy in copies.filter(|copy| apart.contains(&copy.path)) {
                graph.add(self.artifact(&copy.file, &copy.name, outputs, std::iter::once(&copy.path)));
                parts.push(self.id(&copy.file));
            }
        }
        for source in &self.provenance.sources {
            graph.add(self.source(source));
            parts.push(self.id(&source.file));
        }
        // Data entities are parts of the crate; what is described only is reached through the actions.
        parts.retain(|part| !part.starts_with('#'));
        parts
    }

    fn file(&self, file: &File, name: &str) -> Value {
        let is_image = file.media_type().starts_with("image/");
        let is_here = self.holds(file);
        let types = match (is_here, is_image) {
            (true, true) => json!(["File", "ImageObject"]),
            (true, false) => json!("File"),
            (false, _) => json!("CreativeWork"),
        };
        let absent = match (is_here, file.sha256) {
            (true, _) => Value::Null,
            (false, Some(_)) => "Not included: the crate was exported without data.".into(),
            (false, None) => {
                "Not included: its bytes are not at hand any more; the digest is from the record.".into()
            }
        };
        without_nulls(json!({
            "@id": self.id(file),
            "@type": types,
            "name": name,
            "description": absent,
            "encodingFormat": file.media_type(),
            "contentSize": file.size.map(|size| size.to_string()),
            "sha256": file.sha256_hex(),
            "blake3": file.blake3.hex(),
        }))
    }

    /// A file that cells gave, as these outputs, and what it was published as.
    fn artifact<'p>(
        &self,
        file: &File,
        name: &str,
        outputs: &[&Output],
        published: impl Iterator<Item = &'p Utf8PathBuf>,
    ) -> Value {
        let mut entity = self.file(file, name);
        if let Some(output) = outputs.first() {
            entity["contentBlake3"] = output.content.hex().into();
            if let Some(rows) = output.rows {
                entity["rows"] = rows.into();
            }
            if output.volatile {
                entity["volatile"] = true.into();
            }
        }
        let published: Vec<Value> = published.map(|path| path.as_str().into()).collect();
        if !published.is_empty() {
            entity["publishedAs"] = if let [one] = &published[..] {
                one.clone()
            } else {
                Value::Array(published)
            };
        }
        entity
    }

    fn source(&self, source: &Source) -> Value {
        let name = source.path.as_ref().and_then(|path| path.file_name());
        let mut entity = self.file(&source.file, name.unwrap_or("a file from outside"));
        if let Some(path) = &source.path {
            entity["takenFrom"] = path.as_str().into();
        }
        entity
    }

    /// References to the artifacts of subjects.
    pub(super) fn subjects(&self) -> Value {
        let subjects = self.provenance.subjects.iter();
        let files = subjects.flat_map(|(cell, output)| {
            let output = &self.provenance.cells[*cell].outputs[*output];
            self.provenance.artifacts[output.artifact].files(output)
        });
        several(files.map(|file| self.id(file)))
    }
}
