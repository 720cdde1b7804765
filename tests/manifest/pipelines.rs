//! The manifests that ship with the project.

use std::io::Write as _;

use camino::Utf8PathBuf;
use provenir::manifest::{Overrides, load};
use provenir::registry::Registry;

#[test]
fn every_pipeline_can_be_planned_in_every_profile() {
    let registry = Registry::new(provenir_kinds::all());
    let mut paths: Vec<Utf8PathBuf> = fs_err::read_dir("pipelines")
        .unwrap()
        .map(|entry| Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap())
        .filter(|path| path.extension() == Some("toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let text = fs_err::read_to_string(&path).unwrap();
        let profiles = text
            .lines()
            .filter_map(|line| line.strip_prefix("[profiles.")?.strip_suffix(']'))
            .map(|name| Some(name.to_owned()));
        for profile in profiles.chain([None]) {
            let overrides = Overrides {
                profile: profile.clone(),
                ..Overrides::default()
            };
            match load(&path, &registry, &overrides) {
                Ok(plan) => assert!(plan.warnings.is_empty(), "{}", plan.warnings),
                // Data that is not part of the repository may be absent; everything else of the manifest is checked.
                Err(found)
                    if found
                        .entries()
                        .all(|entry| entry.message.contains("there is no file")) =>
                {
                    // Past the harness, which shows nothing of a test that passes.
                    let said = format!("SKIPPED the sources of {path} (profile {profile:?}):\n{found}\n");
                    std::io::stderr().write_all(said.as_bytes()).unwrap();
                }
                Err(found) => panic!("{found}"),
            }
        }
    }
}
