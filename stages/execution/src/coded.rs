//! Values as bytes, for checkpoints: little-endian numbers, sequences after their length, structures field by field.

use provenir_api::Digest;

/// What can be written as bytes and read again.
pub trait Coded: Sized {
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

impl<T: Coded, U: Coded> Coded for (T, U) {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some((T::read(bytes)?, U::read(bytes)?))
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

/// A value as a whole checkpoint: `mark`, which changes whenever the format does, the value, and the BLAKE3 of both.
pub fn encode(mark: &[u8], value: &impl Coded) -> Vec<u8> {
    let mut bytes = mark.to_vec();
    value.write(&mut bytes);
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(digest.bytes());
    bytes
}

/// What [`encode`] made bytes of; nothing where they are damaged or of another format.
pub fn decode<T: Coded>(mark: &[u8], bytes: &[u8]) -> Option<T> {
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<Digest>())?)?;
    if Digest::of(body).bytes() != digest {
        return None;
    }
    let mut rest = body.strip_prefix(mark)?;
    let value = T::read(&mut rest)?;
    rest.is_empty().then_some(value)
}

/// Implements [`Coded`] for structures: their fields in this order.
#[macro_export]
macro_rules! coded {
    ($($structure:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::Coded for $structure {
            fn write(&self, bytes: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($crate::Coded::write($field, bytes);)*
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::Coded::read(bytes)?),* })
            }
        }
    )*};
}
