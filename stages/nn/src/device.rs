//! Where to compute, and with how many threads.

use std::sync::Once;

use tch::Device;

use crate::driver::first_device;
use crate::{NnError, cuda, graph};

/// The LibTorch that this crate is built against; the build fails with any other.
pub const LIBTORCH: &str = "2.11.0";

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A GPU where there is one, else the processor.
    Auto,
    /// The processor.
    Cpu,
    /// A GPU, or an error that says why there is none.
    Cuda,
}

/// How exactly a GPU multiplies matrices of single precision. A processor does it in single precision, whatever is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// In single precision.
    Float32,
    /// With factors rounded to TF32 (the range of single precision, 10 bits of mantissa) and sums in single precision.
    Tf32,
}

/// A device, and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The device.
    pub device: Device,
    /// One sentence for the log.
    pub reason: String,
}

/// Finds the device to compute on.
///
/// LibTorch's CUDA part is a library of its own, which nothing here is linked to: one program serves machines with and
/// without it. It is looked for, and loaded, where a GPU may be taken, at the first call.
pub fn select(choice: Choice) -> Result<Selected, NnError> {
    let on = |device, reason: String| Ok(Selected { device, reason });
    if choice == Choice::Cpu {
        return on(Device::Cpu, "computing on the processor, as asked for".to_owned());
    }
    match (cuda::load(), choice) {
        (Ok(()), _) => {
            let named = first_device().map_or_else(String::new, |name| format!(" ({name})"));
            on(
                Device::Cuda(0),
                format!("computing on the first CUDA device{named}"),
            )
        }
        (Err(why), Choice::Cuda) => Err(NnError::Device(why.to_owned())),
        (Err(why), _) => on(
            Device::Cpu,
            format!("computing on the processor, which is enough; a GPU is left out: {why}"),
        ),
    }
}

/// Fails where this program was built without what training on a GPU rests on, whatever machine it runs on.
pub fn check_build() -> Result<(), NnError> {
    cuda::embedded_graph_library()
        .map(|_| ())
        .map_err(|why| NnError::Device(why.to_owned()))
}

/// Sets how exactly that device multiplies matrices from now on.
///
/// For the whole process: whoever computes says how.
pub fn set_precision(device: Device, precision: Precision) -> Result<(), NnError> {
    if !device.is_cuda() {
        return Ok(());
    }
    graph::allow_tf32(precision == Precision::Tf32)
}

/// Sets the number of threads within one operation; results depend on it in the last bits. Operations never run beside
/// each other.
///
/// For the whole process: whoever computes says how many.
pub fn set_threads(threads: u32) {
    // LibTorch allows this one to be set once, before the first parallel work.
    static INTEROP: Once = Once::new();
    INTEROP.call_once(|| tch::set_num_interop_threads(1));
    tch::set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_always_there_and_a_missing_gpu_says_why() {
        assert_eq!(select(Choice::Cpu).unwrap().device, Device::Cpu);
        let auto = select(Choice::Auto).unwrap();
        match select(Choice::Cuda) {
            Ok(found) => assert_eq!(auto.device, found.device),
            Err(error) => {
                assert_eq!(auto.device, Device::Cpu);
                let NnError::Device(why) = error else {
                    panic!("{error}")
                };
                assert!(auto.reason.contains(&why) && why.len() > 20, "{why}");
            }
        }
    }
}
