//! Tells the worker where LibTorch's libraries are at run time: beside an installed worker (`bin/` and `lib/` in one folder),
//! else where it was built. `LD_LIBRARY_PATH` goes before both, so that one worker serves a machine with CUDA too.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    #[expect(
        clippy::disallowed_methods,
        reason = "a build script is told things through its environment"
    )]
    let libraries = std::env::var("DEP_TCH_LIBTORCH_LIB")?;
    let libraries = fs_err::canonicalize(libraries)?;
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    Ok(())
}
