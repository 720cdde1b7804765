//! Values as bytes: little-endian numbers, sequences after their length, structures field by field.

/// What can be written as bytes and read again.
pub(crate) trait Coded: Sized {
    /// Adds itself.
    fn write(&self, bytes: &mut Vec<u8>);
    /// Takes one from the front; nothing where there is none.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Coded for $number {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (number, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*number))
            }
        }
    )*};
}

numbers!(u8, u32, u64, f32, f64);

impl Coded for [u8; 32] {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (array, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*array)
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).write(bytes);
        for value in self {
            value.write(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = u64::read(bytes)?;
        // Everything takes at least a byte: a false length ends with the bytes, before it takes memory.
        (0..length).map(|_| T::read(bytes)).collect()
    }
}

impl<T: Coded> Coded for Option<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        u8::from(self.is_some()).write(bytes);
        if let Some(value) = self {
            value.write(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        match u8::read(bytes)? {
            0 => Some(None),
            1 => Some(Some(T::read(bytes)?)),
            _ => None,
        }
    }
}

/// Writes and reads the fields of a structure in this order.
macro_rules! coded {
    ($($structure:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::bytes::Coded for $structure {
            fn write(&self, bytes: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($crate::bytes::Coded::write($field, bytes);)*
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::bytes::Coded::read(bytes)?),* })
            }
        }
    )*};
}
pub(crate) use coded;
