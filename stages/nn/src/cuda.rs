//! Loads LibTorch's CUDA part where it lies beside the part that this program is linked to.

#![expect(unsafe_code, reason = "the dynamic linker is called by its C interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

// From <dlfcn.h> of glibc and musl on Linux.
const RTLD_NOW: c_int = 2;
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
    let path =
        CString::new(library.as_os_str().as_bytes()).map_err(|_| "a path holds a zero byte".to_owned())?;
    // SAFETY: `path` is a C string that outlives the call. Running the library's initialisers is what LibTorch is
    // made for: they register its CUDA part with the loaded core, which belongs to the same release.
    let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW | RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: after a failed `dlopen`, `dlerror` gives a C string that stays valid until this thread's next call to
        // the dynamic linker; it is copied before.
        let message = unsafe {
            let message = dlerror();
            if message.is_null() {
                "unknown reason".to_owned()
            } else {
                CStr::from_ptr(message).to_string_lossy().into_owned()
            }
        };
        return Err(format!("LibTorch's CUDA part does not load: {message}"));
    }
    if tch::Cuda::is_available() {
        Ok(())
    } else {
        Err("LibTorch's CUDA part is there, but finds no usable GPU (no driver, no device, or CUDA_VISIBLE_DEVICES is empty)"
            .to_owned())
    }
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
