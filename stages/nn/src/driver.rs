//! What NVIDIA's driver says of itself and of its devices, asked without LibTorch: where that finds no GPU, the driver knows why.

#![expect(unsafe_code, reason = "the driver is called by its C interface")]

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::path::Path;

use crate::cuda::{Library, RTLD_NOW};

/// The driver, as far as it could be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// Its library does not load.
    Missing { why: String },
    /// It does not start; its code says why (`cuda.h`, `CUresult`).
    Failing { cuda: CudaVersion, code: c_int },
    /// It is there, with so many devices.
    Running { cuda: CudaVersion, devices: c_int },
}

/// The newest version of CUDA that a driver serves, as `cuDriverGetVersion` gives it: 1000 times the first number and 10 times the
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CudaVersion(c_int);

impl fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// `CUDA_ERROR_NO_DEVICE`
const NO_DEVICE: c_int = 100;

impl Driver {
    /// Asks the driver.
    pub(crate) fn ask() -> Self {
        match Api::load() {
            Ok(api) => api.ask(),
            Err(why) => Self::Missing { why },
        }
    }

    /// Why LibTorch, whose CUDA part is loaded, finds no GPU; `visible` is what `CUDA_VISIBLE_DEVICES` says.
    pub(crate) fn why_not(&self, visible: Option<&str>) -> String {
        let hidden = match visible {
            Some(visible) => format!("; CUDA_VISIBLE_DEVICES is `{visible}`"),
            None => String::new(),
        };
        match self {
            Self::Missing { why } => format!("there is no NVIDIA driver ({why})"),
            Self::Failing {
                cuda,
                code: NO_DEVICE,
            } => {
                format!("the NVIDIA driver, for CUDA up to {cuda}, finds no device{hidden}")
            }
            Self::Failing { cuda, code } => {
                format!("the NVIDIA driver, for CUDA up to {cuda}, does not start (its error {code}{hidden})")
            }
            Self::Running { cuda, devices } => format!(
                "the NVIDIA driver has {devices} devices and serves CUDA up to {cuda}, which this LibTorch cannot use: a newer driver \
                 may be needed{hidden}"
            ),
        }
    }
}

/// The first device's name and the version that its driver serves, where they can be had.
pub(crate) fn first_device() -> Option<String> {
    let api = Api::load().ok()?;
    let Driver::Running { cuda, .. } = api.ask() else {
        return None;
    };
    Some(format!("{}, driver for CUDA up to {cuda}", api.name_of_first()?))
}

struct Api {
    init: unsafe extern "C" fn(u32) -> c_int,
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    count: unsafe extern "C" fn(*mut c_int) -> c_int,
    get: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
}

impl Api {
    fn load() -> Result<Self, String> {
        // SAFETY: the driver's library, which LibTorch's CUDA part loads, too; the types are those of `cuda.h`, stable since CUDA 2.
        unsafe {
            let library = Library::open(Path::new("libcuda.so.1"), RTLD_NOW)?;
            let said = |error: crate::NnError| error.to_string();
            Ok(Self {
                init: library.symbol(c"cuInit").map_err(said)?,
                version: library.symbol(c"cuDriverGetVersion").map_err(said)?,
                count: library.symbol(c"cuDeviceGetCount").map_err(said)?,
                get: library.symbol(c"cuDeviceGet").map_err(said)?,
                name: library.symbol(c"cuDeviceGetName").map_err(said)?,
            })
        }
    }

    fn ask(&self) -> Driver {
        let (mut version, mut devices) = (0, 0);
        // SAFETY: the pointers are to numbers of our own; the version may be asked for before the start.
        let (_, started, counted) = unsafe {
            (
                (self.version)(&raw mut version),
                (self.init)(0),
                (self.count)(&raw mut devices),
            )
        };
        let cuda = CudaVersion(version);
        match [started, counted].into_iter().find(|code| *code != 0) {
            Some(code) => Driver::Failing { cuda, code },
            None => Driver::Running { cuda, devices },
        }
    }

    /// After [`Api::ask`] has found devices.
    fn name_of_first(&self) -> Option<String> {
        let (mut device, mut name) = (0, [0 as c_char; 256]);
        // SAFETY: the pointers are to memory of our own, whose length is given; the driver ends the name with a zero.
        let done = unsafe {
            (self.get)(&raw mut device, 0) == 0
                && (self.name)(name.as_mut_ptr(), name.len() as c_int - 1, device) == 0
        };
        if !done {
            return None;
        }
        // SAFETY: the last byte is a zero that nobody wrote over.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Some(name.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_cannot_be_had_is_missed_for_the_reason_that_the_driver_gives() {
        let cuda = CudaVersion(12_080);
        let missing = Driver::Missing {
            why: "libcuda.so.1: cannot open shared object file".to_owned(),
        };
        for (driver, visible, expected) in [
            (
                missing,
                Some(""),
                "there is no NVIDIA driver (libcuda.so.1: cannot open shared object file)",
            ),
            (
                Driver::Failing { cuda, code: 100 },
                Some(""),
                "the NVIDIA driver, for CUDA up to 12.8, finds no device; CUDA_VISIBLE_DEVICES is ``",
            ),
            (
                Driver::Failing { cuda, code: 803 },
                None,
                "the NVIDIA driver, for CUDA up to 12.8, does not start (its error 803)",
            ),
            (
                Driver::Running { cuda, devices: 2 },
                None,
                "the NVIDIA driver has 2 devices and serves CUDA up to 12.8, which this LibTorch cannot use: a newer driver may be \
                 needed",
            ),
        ] {
            assert_eq!(driver.why_not(visible), expected);
        }
    }

    #[test]
    fn asking_finds_a_driver_or_says_why_there_is_none() {
        match Driver::ask() {
            Driver::Missing { why } => {
                assert!(why.contains("libcuda.so.1"), "{why}");
                assert_eq!(first_device(), None);
            }
            Driver::Failing { code, .. } => assert_ne!(code, 0),
            Driver::Running { devices, .. } => assert!(devices > 0 && first_device().is_some()),
        }
    }
}
