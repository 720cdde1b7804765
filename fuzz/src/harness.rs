//! Beginning a target, and what becomes of panics.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

/// Where a target that is asked for its seeds writes them.
const SEEDS: &str = "PROVENIR_FUZZ_SEEDS";

/// What the last panic said.
static SAID: Mutex<String> = Mutex::new(String::new());

/// Begins a target: writes its seeds and ends where it is asked for them.
///
/// libFuzzer's own hook ends the process at every panic. The Parquet library panics at some malformed files, which our reader
/// turns into errors: so only what nobody catches ends it, in [`examine`].
pub fn begin(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    if let Ok(folder) = std::env::var(SEEDS) {
        let folder = Utf8PathBuf::from(folder);
        fs_err::create_dir_all(&folder).expect("the folder for seeds can be made");
        for (number, seed) in seeds().into_iter().enumerate() {
            fs_err::write(folder.join(format!("seed-{number:04}")), seed).expect("a seed can be written");
        }
        std::process::exit(0);
    }
    panic::set_hook(Box::new(|panic| {
        *SAID.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
}

/// Runs a target on one input; a panic ends the process, which is how libFuzzer learns of it.
pub fn examine(target: impl FnOnce()) {
    if panic::catch_unwind(AssertUnwindSafe(target)).is_err() {
        eprintln!("{}", SAID.lock().unwrap_or_else(PoisonError::into_inner));
        std::process::abort();
    }
}

/// A folder of this process, which whoever started it removes with the folder for temporary files.
pub fn folder() -> &'static Utf8Path {
    static FOLDER: OnceLock<Utf8PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir()
            .expect("a temporary folder can be made")
            .keep();
        Utf8PathBuf::from_path_buf(folder).expect("its path is UTF-8")
    })
}

/// The repository.
pub fn repository() -> &'static Utf8Path {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate lies in the repository")
}
