/// A name that a pickle may import, by what it stands for here.
///
/// This list is the whole vocabulary: a name outside it is refused, and a name on it stands for inert data, never for
/// code. What a `VecNormalize` file carries beside its statistics (random generators of its spaces) is
/// [`Global::Ignored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    OrderedDict,
    /// `torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`
    RebuildTensor,
    /// `torch._utils._rebuild_parameter(tensor, requires_grad, hooks)`
    RebuildParameter,
    Storage(Scalar),
    /// `numpy.core.multiarray._reconstruct(ndarray, (0,), b"b")`, completed by a state
    Reconstruct,
    /// `numpy.core.numeric._frombuffer(buffer, dtype, shape, order)`, in place of the former since protocol 5
    FromBuffer,
    /// `numpy.core.multiarray.scalar(dtype, bytes)`
    NumpyScalar,
    Ndarray,
    Dtype,
    /// `_codecs.encode(text, "latin1")`: bytes in protocols that have none
    Encode,
    VecNormalize,
    RunningMeanStd,
    Ignored,
}

/// What a PyTorch storage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Float32,
    Float64,
    Float16,
    BFloat16,
    Int64,
    Int32,
    Int16,
    Int8,
    UInt8,
    Bool,
}

impl Global {
    /// The global of that name; `None` where it is not on the list.
    pub(crate) fn named(module: &str, name: &str) -> Option<Self> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Self::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2") => Self::RebuildTensor,
            ("torch._utils", "_rebuild_parameter") => Self::RebuildParameter,
            ("torch", storage) => Self::Storage(Scalar::of_storage(storage)?),
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Self::Reconstruct,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Self::NumpyScalar,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Self::FromBuffer,
            ("numpy", "ndarray") => Self::Ndarray,
            ("numpy", "dtype") => Self::Dtype,
            ("_codecs", "encode") => Self::Encode,
            ("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize") => Self::VecNormalize,
            ("stable_baselines3.common.running_mean_std", "RunningMeanStd") => Self::RunningMeanStd,
            // `bytes()`: how protocol 2 writes an empty array's data.
            ("__builtin__" | "builtins", "bytes")
            | ("gym.spaces.box" | "gymnasium.spaces.box", "Box")
            | ("gym.utils.seeding", "RandomNumberGenerator")
            | ("numpy.random._pickle", "__randomstate_ctor" | "__generator_ctor" | "__bit_generator_ctor")
            | ("numpy.random._mt19937", "MT19937")
            | ("numpy.random._pcg64", "PCG64")
            | ("numpy.random.bit_generator", "SeedSequence" | "__pyx_unpickle_SeedSequence") => Self::Ignored,
            _ => return None,
        })
    }
}

impl Scalar {
    /// Bytes of one value.
    pub(crate) const fn size(self) -> u64 {
        match self {
            Self::Float64 | Self::Int64 => 8,
            Self::Float32 | Self::Int32 => 4,
            Self::Float16 | Self::BFloat16 | Self::Int16 => 2,
            Self::Int8 | Self::UInt8 | Self::Bool => 1,
        }
    }

    fn of_storage(name: &str) -> Option<Self> {
        Some(match name {
            "FloatStorage" => Self::Float32,
            "DoubleStorage" => Self::Float64,
            "HalfStorage" => Self::Float16,
            "BFloat16Storage" => Self::BFloat16,
            "LongStorage" => Self::Int64,
            "IntStorage" => Self::Int32,
            "ShortStorage" => Self::Int16,
            "CharStorage" => Self::Int8,
            "ByteStorage" => Self::UInt8,
            "BoolStorage" => Self::Bool,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Float16 => "float16",
            Self::BFloat16 => "bfloat16",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::Int16 => "int16",
            Self::Int8 => "int8",
            Self::UInt8 => "uint8",
            Self::Bool => "bool",
        })
    }
}
