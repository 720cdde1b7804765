//! Tells this package's tests and examples where LibTorch's libraries are at run time.

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
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    Ok(())
}
