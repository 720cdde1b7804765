//! Compiles the shim against the distribution's Bullet in double precision.

/// Debian's name for the double-precision build; the plain `bullet.pc` is single precision.
const PACKAGE: &str = "bullet-float64";

/// Versions whose dynamics were held against PyBullet 3.2.7.
const KNOWN: [&str; 2] = ["3.24", "3.26"];

fn main() {
    println!("cargo::rerun-if-changed=src/shim.cpp");
    let bullet = match pkg_config::Config::new().cargo_metadata(false).probe(PACKAGE) {
        Ok(bullet) => bullet,
        Err(error) => {
            println!(
                "cargo::error=Bullet in double precision was not found: install it with \
                 `sudo apt-get install libbullet-dev pkg-config` (pkg-config looked for {PACKAGE}.pc: {})",
                first_line(&error.to_string())
            );
            return;
        }
    };
    if !KNOWN.contains(&bullet.version.as_str()) {
        println!(
            "cargo::warning=Bullet {} is not among the versions known to give PyBullet's trajectories ({}): \
             run `cargo test --release -p provenir-sim` before trusting it",
            bullet.version,
            KNOWN.join(", ")
        );
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file("src/shim.cpp");
    // A fused multiply-add in an inlined vector operation would change last bits.
    build.flag_if_supported("-ffp-contract=off");
    // As system headers, so that warnings are about the shim alone; /usr/include is one already, and naming it again
    // breaks the standard library's #include_next.
    for path in bullet
        .include_paths
        .iter()
        .filter(|path| path.as_path() != "/usr/include")
    {
        build.flag("-isystem").flag(path);
    }
    for (name, value) in &bullet.defines {
        build.define(name, value.as_deref());
    }
    build.compile("provenir_bullet_shim");
    for path in &bullet.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // The soft-body library that the package also names is not used.
    for library in bullet.libs.iter().filter(|library| !library.contains("SoftBody")) {
        println!("cargo::rustc-link-lib={library}");
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
