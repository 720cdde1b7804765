//! Steps that a GPU repeats without being told every operation again.

#![expect(
    unsafe_code,
    reason = "a library that is loaded at run time is called by its C interface"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use tch::Device;

use crate::{NnError, cuda};

/// How often a step is done one operation at a time before it is recorded: libraries make room for themselves meanwhile,
/// which cannot be recorded.
const WARM_UP: u32 = 3;

/// A step that is done over and over, in variants told apart by `V`.
///
/// On the processor every run calls it. On a GPU a variant is recorded once as a CUDA graph, and from then on done again by
/// one call, which costs a fraction of telling the GPU operation after operation.
///
/// A recorded step does again exactly what it did: it must read and write nothing but tensors that outlive it, at the same
/// places, and leave no trace on the host. What changes from run to run (rates, samples, noise) is copied into such tensors
/// before. LibTorch refuses to record what would wait for the GPU.
pub struct Repeated<V> {
    /// Where there is a GPU.
    shim: Option<Shim>,
    variants: BTreeMap<V, Variant>,
}

enum Variant {
    /// Run so many times.
    Cold(u32),
    Recorded(Graph),
}

impl<V: Ord> Repeated<V> {
    /// For a step on that device. On a GPU, all that this thread asks of it from now on goes to a stream of its own, the same
    /// for all that it repeats; what it asked for before is done by then.
    pub fn new(device: Device) -> Result<Self, NnError> {
        let shim = device.is_cuda().then(Shim::load).transpose()?;
        if let Some(shim) = &shim {
            shim.use_own_stream()?;
        }
        Ok(Self {
            shim,
            variants: BTreeMap::new(),
        })
    }

    /// Forgets what was recorded: variants of before do not come again.
    pub fn forget(&mut self) {
        self.variants.clear();
    }

    /// Does the step.
    pub fn run(&mut self, variant: V, mut step: impl FnMut() -> Result<(), NnError>) -> Result<(), NnError> {
        let Some(shim) = self.shim else {
            return step();
        };
        let state = self.variants.entry(variant).or_insert(Variant::Cold(0));
        match state {
            Variant::Cold(runs) if *runs < WARM_UP => {
                *runs += 1;
                step()
            }
            Variant::Cold(_) => {
                let graph = Graph::record(shim, step)?;
                graph.replay()?;
                *state = Variant::Recorded(graph);
                Ok(())
            }
            Variant::Recorded(graph) => graph.replay(),
        }
    }
}

/// What a GPU was once asked for.
struct Graph {
    shim: Shim,
    handle: *mut c_void,
}

impl Graph {
    /// Records what the step asks for; nothing of it is done.
    fn record(shim: Shim, mut step: impl FnMut() -> Result<(), NnError>) -> Result<Self, NnError> {
        let mut graph = Self {
            shim,
            handle: ptr::null_mut(),
        };
        let handle: *mut *mut c_void = &raw mut graph.handle;
        // SAFETY: `handle` points to a place for a pointer; the rest is as `call` gives it.
        Shim::call(|error, length| unsafe { (shim.begin)(handle, error, length) })?;
        let done = step();
        // SAFETY: the graph was begun, and is freed by `Drop` alone. It is ended even where the step failed, so that the
        // stream is of use again.
        let ended = Shim::call(|error, length| unsafe { (shim.end)(graph.handle, error, length) });
        done?;
        ended?;
        Ok(graph)
    }

    fn replay(&self) -> Result<(), NnError> {
        // SAFETY: the graph was recorded, and is freed by `Drop` alone.
        Shim::call(|error, length| unsafe { (self.shim.replay)(self.handle, error, length) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is null, which is nothing to free, or that of a graph that was begun and is freed here alone.
        unsafe { (self.shim.free)(self.handle) }
    }
}

/// Whether matrix products on GPUs, of the whole process, may round their factors to TF32.
pub(crate) fn allow_tf32(allowed: bool) -> Result<(), NnError> {
    let shim = Shim::load()?;
    // SAFETY: the arguments are as `call` gives them.
    Shim::call(|error, length| unsafe { (shim.allow_tf32)(c_int::from(allowed), error, length) })
}

type Guarded = unsafe extern "C" fn(*mut c_char, usize) -> c_int;
type Switch = unsafe extern "C" fn(c_int, *mut c_char, usize) -> c_int;
type Begin = unsafe extern "C" fn(*mut *mut c_void, *mut c_char, usize) -> c_int;
type WithGraph = unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);

/// The functions of `shim/graph.cpp`, in a library that is never unloaded.
#[derive(Clone, Copy)]
struct Shim {
    stream: Guarded,
    allow_tf32: Switch,
    begin: Begin,
    end: WithGraph,
    replay: WithGraph,
    free: Free,
}

impl Shim {
    fn load() -> Result<Self, NnError> {
        let library = cuda::graph_library().map_err(|why| NnError::Device(why.to_owned()))?;
        // SAFETY: the types are those that `shim/graph.cpp`, which this program was built with, declares.
        unsafe {
            Ok(Self {
                stream: library.symbol(c"provenir_graph_stream")?,
                allow_tf32: library.symbol(c"provenir_allow_tf32")?,
                begin: library.symbol(c"provenir_graph_begin")?,
                end: library.symbol(c"provenir_graph_end")?,
                replay: library.symbol(c"provenir_graph_replay")?,
                free: library.symbol(c"provenir_graph_free")?,
            })
        }
    }

    fn use_own_stream(self) -> Result<(), NnError> {
        // SAFETY: the arguments are as `call` gives them.
        Self::call(|error, length| unsafe { (self.stream)(error, length) })
    }

    /// Calls a function that gives 0, or another number and what happened as a C string of at most `length` bytes.
    fn call(function: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<(), NnError> {
        let mut error: [c_char; 1024] = [0; 1024];
        if function(error.as_mut_ptr(), error.len()) == 0 {
            return Ok(());
        }
        error[error.len() - 1] = 0;
        // SAFETY: the buffer ends with a zero.
        let message = unsafe { CStr::from_ptr(error.as_ptr()) }.to_string_lossy();
        Err(NnError::Graph(
            message.lines().next().unwrap_or_default().to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_does_every_run() {
        let mut repeated = Repeated::new(Device::Cpu).unwrap();
        let mut runs = 0;
        for run in 0..10 {
            repeated
                .run(run % 2 == 0, || {
                    runs += 1;
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(runs, 10);
    }
}
