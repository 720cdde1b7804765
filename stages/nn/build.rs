//! Tells this package's tests where LibTorch's libraries are at run time, and compiles what records CUDA graphs.

use std::error::Error;
use std::path::{Path, PathBuf};

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is told things through its environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shim/graph.cpp");
    println!("cargo::rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    println!("cargo::rerun-if-env-changed=CUDA_HOME");
    let libraries = std::env::var("DEP_TCH_LIBTORCH_LIB")?;
    let libraries = fs_err::canonicalize(libraries)?;
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());

    let library = PathBuf::from(std::env::var("OUT_DIR")?).join("libgraph.so");
    let torch = libraries.join("../include");
    let toolkit = std::env::var("CUDA_HOME").map(|home| PathBuf::from(home).join("include"));
    let headers = [Some(torch.clone()), toolkit.ok()];
    let mut headers = headers.into_iter().flatten();
    if let Some(cuda) = headers.find(|folder| folder.join("cuda_runtime_api.h").exists()) {
        compile(&library, &torch, &cuda)?;
    } else {
        println!(
            "cargo::warning=no cuda_runtime_api.h in {} nor in CUDA_HOME: the worker will train on processors alone",
            torch.display()
        );
        fs_err::write(&library, [])?;
    }
    println!("cargo::rustc-env=PROVENIR_GRAPH_LIBRARY={}", library.display());
    Ok(())
}

/// A library of its own, because its symbols are found only where LibTorch's CUDA part is loaded.
fn compile(library: &Path, torch: &Path, cuda: &Path) -> Result<(), Box<dyn Error>> {
    let compiler = cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .debug(false)
        .cargo_metadata(false)
        .try_get_compiler()?;
    let status = compiler
        .to_command()
        .args(["-shared", "-fPIC", "-s", "-o"])
        .arg(library)
        .arg("shim/graph.cpp")
        .arg("-isystem")
        .arg(torch)
        .arg("-isystem")
        .arg(cuda)
        .status()?;
    if !status.success() {
        return Err(format!("the compiler of shim/graph.cpp ended with {status}").into());
    }
    Ok(())
}
