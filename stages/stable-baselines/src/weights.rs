//! PyTorch's `.pth` files: a zip archive of a pickled state dict and the storages that its tensors view.

use std::collections::BTreeMap;

use crate::archive::{Archive, ArchiveError};
use crate::pickle::{self, Global, Id, Pickle, PickleError, Scalar, Value};

const PICKLE: u64 = 16 << 20;
const STORAGE: u64 = 64 << 20;
/// Numbers read from one file, all tensors together: an overlapping or repeating view costs no more than another.
const VALUES: u64 = 16 << 20;

/// A state dict whose tensors are read one by one.
pub(crate) struct Weights<'a> {
    archive: Archive<'a>,
    /// The folder of every entry: `archive`, or the name that the file once had.
    folder: String,
    tensors: BTreeMap<String, View>,
    storages: BTreeMap<String, Vec<u8>>,
    budget: u64,
}

/// A tensor as the pickle describes it: which numbers of which storage.
#[derive(Debug)]
struct View {
    storage: String,
    scalar: Scalar,
    /// Number of values in the storage.
    length: u64,
    offset: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
}

/// Why a `.pth` file was refused.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// Written before PyTorch 1.6.
    #[error("it has the format that PyTorch used before version 1.6")]
    Legacy,
    /// Its zip archive was refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Its pickle was refused.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// It was written on a big-endian machine.
    #[error("its numbers are big-endian")]
    BigEndian,
    /// It holds something other than named tensors.
    #[error("it is not a state dict: {0}")]
    NoStateDict(&'static str),
    /// A tensor that the network needs is not there.
    #[error("it has no tensor `{0}`")]
    Missing(String),
    /// A tensor's numbers are of another type than the networks that are read.
    #[error("the tensor `{tensor}` holds {found}; networks of float32 are read")]
    Type {
        /// Which.
        tensor: String,
        /// What it holds.
        found: String,
    },
    /// A tensor's description does not fit its storage.
    #[error("the tensor `{tensor}` does not fit its storage: {what}")]
    Storage {
        /// Which.
        tensor: String,
        /// What is wrong.
        what: &'static str,
    },
    /// More numbers than any agent has.
    #[error("its tensors hold more than {VALUES} numbers")]
    TooLarge,
}

impl<'a> Weights<'a> {
    /// Opens a `.pth` file and reads its description; no tensor yet.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, WeightsError> {
        // A legacy file begins with a bare pickle, that of the magic number.
        if bytes.starts_with(b"\x80") {
            return Err(WeightsError::Legacy);
        }
        let mut archive = Archive::open(bytes)?;
        let folder = archive
            .names()
            .find_map(|name| {
                let folder = name.strip_suffix("/data.pkl")?;
                (!folder.contains('/')).then(|| folder.to_owned())
            })
            .ok_or_else(|| ArchiveError::Missing("archive/data.pkl".to_owned()))?;
        match archive.read(&format!("{folder}/byteorder"), 16) {
            Ok(order) if order == b"little" => {}
            Ok(_) => return Err(WeightsError::BigEndian),
            // PyTorch before 2.1 does not say, and wrote what its machine was: little-endian on all it was built for.
            Err(ArchiveError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let description = archive.read(&format!("{folder}/data.pkl"), PICKLE)?;
        let tensors = views(&pickle::parse(&description)?)?;
        Ok(Self {
            archive,
            folder,
            tensors,
            storages: BTreeMap::new(),
            budget: VALUES,
        })
    }

    /// The names of all tensors, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor's shape; `None` where there is no such tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<&[u64]> {
        self.tensors.get(name).map(|view| view.shape.as_slice())
    }

    /// Reads a tensor of single precision; its values in row-major order.
    pub(crate) fn tensor(&mut self, name: &str) -> Result<Vec<f32>, WeightsError> {
        let view = self
            .tensors
            .get(name)
            .ok_or_else(|| WeightsError::Missing(name.to_owned()))?;
        let misfit = |what| WeightsError::Storage {
            tensor: name.to_owned(),
            what,
        };
        if view.scalar != Scalar::Float32 {
            return Err(WeightsError::Type {
                tensor: name.to_owned(),
                found: view.scalar.to_string(),
            });
        }
        let count = view.count().filter(|count| *count <= self.budget);
        let count = count.ok_or(WeightsError::TooLarge)?;
        if count > 0 && view.last().is_none_or(|last| last >= view.length) {
            return Err(misfit("it reaches beyond the storage's end"));
        }
        if !self.storages.contains_key(&view.storage) {
            let entry = format!("{}/data/{}", self.folder, view.storage);
            let bytes = self.archive.read(&entry, STORAGE)?;
            self.storages.insert(view.storage.clone(), bytes);
        }
        let bytes = &self.storages[&view.storage];
        if view.length.checked_mul(view.scalar.size()) != Some(bytes.len() as u64) {
            return Err(misfit("the storage is not as long as described"));
        }
        self.budget -= count;
        let (storage, _) = bytes.as_chunks::<4>();
        let values = (0..count).map(|index| f32::from_le_bytes(storage[view.position(index) as usize]));
        Ok(values.collect())
    }
}

impl View {
    fn count(&self) -> Option<u64> {
        self.shape
            .iter()
            .try_fold(1_u64, |count, size| count.checked_mul(*size))
    }

    /// The greatest position in the storage that a view without empty dimension touches.
    fn last(&self) -> Option<u64> {
        self.shape
            .iter()
            .zip(&self.strides)
            .try_fold(self.offset, |last, (size, stride)| {
                last.checked_add((size - 1).checked_mul(*stride)?)
            })
    }

    /// The position in the storage of the value at a row-major index.
    fn position(&self, index: u64) -> u64 {
        let (mut position, mut rest) = (self.offset, index);
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            position += rest % size * stride;
            rest /= size;
        }
        position
    }
}

fn views(pickle: &Pickle<'_>) -> Result<BTreeMap<String, View>, WeightsError> {
    let entries = pickle
        .entries(pickle.root())
        .ok_or(WeightsError::NoStateDict("it holds no dict"))?;
    let mut tensors = BTreeMap::new();
    for (name, tensor) in entries {
        let name = pickle
            .text(*name)
            .ok_or(WeightsError::NoStateDict("a name is not a text"))?;
        let view = view(pickle, *tensor).ok_or(WeightsError::NoStateDict("a value is not a tensor"))?;
        tensors.insert(name.to_owned(), view);
    }
    Ok(tensors)
}

/// The tensor that a call of `_rebuild_tensor_v2` describes, possibly inside one of `_rebuild_parameter`.
fn view(pickle: &Pickle<'_>, id: Id) -> Option<View> {
    let mut object = pickle.object(id)?;
    if object.class == Global::RebuildParameter {
        object = pickle.object(*pickle.tuple(object.arguments)?.first()?)?;
    }
    if object.class != Global::RebuildTensor {
        return None;
    }
    let [storage, offset, shape, strides, ..] = pickle.tuple(object.arguments)? else {
        return None;
    };
    let Value::Persistent(storage) = pickle.value(*storage) else {
        return None;
    };
    // The location ("cpu", "cuda:0") says where the tensor lived, and does not matter to its numbers.
    let [kind, class, key, _location, length] = pickle.tuple(*storage)? else {
        return None;
    };
    let (Some("storage"), Value::Global(Global::Storage(scalar))) =
        (pickle.text(*kind), pickle.value(*class))
    else {
        return None;
    };
    let (shape, strides) = (pickle.sizes(*shape)?, pickle.sizes(*strides)?);
    (shape.len() == strides.len()).then_some(View {
        storage: pickle.text(*key)?.to_owned(),
        scalar: *scalar,
        length: pickle.size(*length)?,
        offset: pickle.size(*offset)?,
        shape,
        strides,
    })
}
