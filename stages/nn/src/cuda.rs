//! Loads LibTorch's CUDA part where it lies beside the part that this program is linked to.

#![expect(unsafe_code, reason = "the dynamic linker is called by its C interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::NnError;
use crate::driver::Driver;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

// From <dlfcn.h> of glibc and musl on Linux.
pub(crate) const RTLD_NOW: c_int = 2;
const RTLD_GLOBAL: c_int = 0x100;

/// Makes CUDA usable, or says why it is not. The first call decides for the life of the process, because LibTorch looks
/// for its CUDA part once, at the first question that concerns it: ask here before asking LibTorch.
pub(crate) fn load() -> Result<(), &'static str> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED
        .get_or_init(try_load)
        .as_ref()
        .map_err(String::as_str)
        .copied()
}

fn try_load() -> Result<(), String> {
    let folder = library_folder()?;
    let library = folder.join("libtorch_cuda.so");
    if !library.exists() {
        return Err(format!(
            "the LibTorch in `{}` is the edition without CUDA (it has no libtorch_cuda.so); point LD_LIBRARY_PATH at the \
             `lib` folder of one with CUDA",
            folder.display()
        ));
    }
    // SAFETY: the library belongs to the same release as the loaded core.
    unsafe { Library::open(&library, RTLD_NOW | RTLD_GLOBAL) }
        .map_err(|why| format!("LibTorch's CUDA part does not load: {why}"))?;
    if tch::Cuda::is_available() {
        Ok(())
    } else {
        #[expect(
            clippy::disallowed_methods,
            reason = "what hides devices is named, and decides nothing else"
        )]
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        Err(format!(
            "LibTorch's CUDA part is there, but finds no GPU: {}",
            Driver::ask().why_not(visible.as_deref())
        ))
    }
}

/// A library that stays loaded for as long as the process runs.
pub(crate) struct Library(*mut c_void);

// SAFETY: the handle is a name for something that is never unloaded and that the dynamic linker guards itself.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a library and what it needs.
    ///
    /// # Safety
    ///
    /// The library's initialisers run.
    pub(crate) unsafe fn open(path: &Path, flags: c_int) -> Result<Self, String> {
        let path =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path holds a zero byte".to_owned())?;
        // SAFETY: `path` is a C string that outlives the call; for the initialisers the caller answers.
        let handle = unsafe { dlopen(path.as_ptr(), flags) };
        if handle.is_null() {
            Err(why())
        } else {
            Ok(Self(handle))
        }
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `F` must be the type of a pointer to that function.
    pub(crate) unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Result<F, NnError> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is that of a loaded library, the name a C string.
        let symbol = unsafe { dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return Err(NnError::Device(why()));
        }
        // SAFETY: both are pointers; for the type the caller answers.
        Ok(unsafe { std::mem::transmute_copy(&symbol) })
    }
}

/// What the dynamic linker says of its last failure.
fn why() -> String {
    // SAFETY: after a failure, `dlerror` gives a C string that stays valid until this thread's next call to the dynamic
    // linker; it is copied before.
    unsafe {
        let message = dlerror();
        if message.is_null() {
            "unknown reason".to_owned()
        } else {
            CStr::from_ptr(message).to_string_lossy().into_owned()
        }
    }
}

/// What records and repeats CUDA graphs; to be asked for where [`load`] has made CUDA usable.
pub(crate) fn graph_library() -> Result<&'static Library, &'static str> {
    static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
    LOADED
        .get_or_init(open_graph_library)
        .as_ref()
        .map_err(String::as_str)
}

/// The library as it travels inside the program, which so stays one file, or why it does not.
pub(crate) fn embedded_graph_library() -> Result<&'static [u8], &'static str> {
    const BYTES: &[u8] = include_bytes!(env!("PROVENIR_GRAPH_LIBRARY"));
    if BYTES.is_empty() {
        return Err(
            "this program was built without CUDA's headers, hence without CUDA graphs, on which training on a GPU rests; build it \
             again with the LibTorch that `make setup` fetches",
        );
    }
    Ok(BYTES)
}

/// The dynamic linker is shown the library as a file in memory.
fn open_graph_library() -> Result<Library, String> {
    let bytes = embedded_graph_library()?;
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let written = rustix::fs::memfd_create(c"provenir-cuda-graph", flags)
        .map_err(std::io::Error::from)
        .and_then(|descriptor| {
            let mut file = std::fs::File::from(descriptor);
            file.write_all(bytes)?;
            Ok(file)
        });
    let file =
        written.map_err(|error| format!("no file in memory for the library of CUDA graphs: {error}"))?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // SAFETY: the library has no initialisers of its own; what it needs of LibTorch was loaded by `load`.
    unsafe { Library::open(&path, RTLD_NOW) }
        .map_err(|why| format!("the library of CUDA graphs does not load: {why}"))
}

/// The folder that this process's `libtorch_cpu.so` was loaded from.
fn library_folder() -> Result<PathBuf, String> {
    let maps = fs_err::read("/proc/self/maps").map_err(|error| error.to_string())?;
    String::from_utf8_lossy(&maps)
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .find(|path| path.file_name().is_some_and(|name| name == "libtorch_cpu.so"))
        .and_then(Path::parent)
        .map(Path::to_owned)
        .ok_or_else(|| "this process has not loaded libtorch_cpu.so".to_owned())
}
