//! Hashes the sources of the workspace, so that the command and its worker can tell whether they belong together.

use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for part in [
        "Cargo.toml",
        "Cargo.lock",
        "src",
        "stages",
        "testing/src",
        "testing/Cargo.toml",
    ] {
        let path = root.join(part);
        println!("cargo:rerun-if-changed={}", path.display());
        gather(&path, &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new_derive_key("provenir build v1");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        let bytes = fs_err::read(&file).unwrap_or_default();
        hasher
            .update(&(name.len() as u64).to_le_bytes())
            .update(name.as_bytes());
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    }
    println!(
        "cargo:rustc-env=PROVENIR_BUILD={}",
        &hasher.finalize().to_hex()[..16]
    );
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let Ok(entries) = fs_err::read_dir(path) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name() != "tests" && entry.file_name() != "benches" {
                gather(&entry.path(), files);
            }
        }
    } else if path.extension().is_some_and(|extension| {
        ["rs", "toml", "lock", "cpp", "h", "txt"]
            .iter()
            .any(|known| extension == *known)
    }) {
        files.push(path.to_owned());
    }
}
