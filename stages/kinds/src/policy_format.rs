use camino::Utf8Path;

/// What a file that holds a policy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFormat {
    /// A policy as a table.
    Table,
    /// A policy as safetensors.
    Safetensors,
    /// A Stable-Baselines3 archive.
    Archive,
}

impl PolicyFormat {
    /// By the end of its name; `None` where that ends in nothing known.
    pub fn of(path: &Utf8Path) -> Option<Self> {
        match path.extension()? {
            "parquet" => Some(Self::Table),
            "safetensors" => Some(Self::Safetensors),
            "zip" => Some(Self::Archive),
            _ => None,
        }
    }

    /// By its first bytes, for a file whose name says nothing: an object of a store.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Table),
            [b'P', b'K', 3, 4, ..] => Some(Self::Archive),
            // The length of a JSON object, and its beginning.
            [_, _, _, _, _, 0, 0, 0, b'{', ..] => Some(Self::Safetensors),
            _ => None,
        }
    }
}
