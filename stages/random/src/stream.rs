use std::fmt;

use crate::philox::block;

/// BLAKE3 context of a stream made from a seed.
const ROOT: &str = "provenir random v1 stream";
/// BLAKE3 context of a stream made from another stream.
const CHILD: &str = "provenir random v1 child";

/// A named sequence of 2^64 draws of 64 bits, and a position in it.
///
/// The identity of a stream is 256 bits that BLAKE3 derives from the seed and the names along the way; 128 of them
/// select the Philox sequence (key and upper half of the counter), the position is the lower half. So streams of
/// different names are unrelated, and a stream's draws never depend on what other streams drew.
///
/// To continue later, keep [`Stream::position`], make the stream again from its seed and names, and [`Stream::seek`].
#[derive(Clone, PartialEq, Eq)]
pub struct Stream {
    identity: [u8; 32],
    position: u64,
    /// The draw at `position` wherever that is odd; a block holds two draws.
    spare: u64,
}

impl Stream {
    /// The stream `name` of a seed, at position 0.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(ROOT);
        hasher.update(&seed.to_le_bytes());
        hasher.update(name.as_bytes());
        Self::from_identity(*hasher.finalize().as_bytes())
    }

    /// The stream of that name and index below this one, at position 0.
    ///
    /// It depends on this stream's identity, not on its position.
    #[must_use]
    pub fn child(&self, name: &str, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CHILD);
        hasher.update(&self.identity);
        hasher.update(&index.to_le_bytes());
        hasher.update(name.as_bytes());
        Self::from_identity(*hasher.finalize().as_bytes())
    }

    fn from_identity(identity: [u8; 32]) -> Self {
        Self {
            identity,
            position: 0,
            spare: 0,
        }
    }

    /// How many draws of 64 bits were taken: the whole state beside seed and names.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to a position, forwards or backwards.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
        if position % 2 == 1 {
            self.spare = self.pair(position / 2)[1];
        }
    }

    /// The draw at a position, wherever the stream stands.
    pub fn at(&self, position: u64) -> u64 {
        self.pair(position / 2)[usize::from(position % 2 == 1)]
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> u64 {
        let draw = if self.position.is_multiple_of(2) {
            let [first, second] = self.pair(self.position / 2);
            self.spare = second;
            first
        } else {
            self.spare
        };
        self.position = self.position.wrapping_add(1);
        draw
    }

    fn pair(&self, index: u64) -> [u64; 2] {
        let word = |at: usize| {
            u32::from_le_bytes([
                self.identity[at],
                self.identity[at + 1],
                self.identity[at + 2],
                self.identity[at + 3],
            ])
        };
        let counter = [index as u32, (index >> 32) as u32, word(8), word(12)];
        let [a, b, c, d] = block([word(0), word(4)], counter);
        [
            u64::from(a) | u64::from(b) << 32,
            u64::from(c) | u64::from(d) << 32,
        ]
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = blake3::Hash::from_bytes(self.identity).to_hex();
        write!(formatter, "Stream({} at {})", &identity[..12], self.position)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Recorded by `tests/reference.py`, which shares no code with this crate.
    #[test]
    fn draws_equal_an_independent_implementation() {
        let mut stream = Stream::new(REFERENCE_SEED, "reference");
        assert_eq!(std::array::from_fn(|_| stream.u64()), REFERENCE_ROOT);
        let mut child = stream.child("episode", 41);
        assert_eq!(std::array::from_fn(|_| child.u64()), REFERENCE_CHILD);
    }

    include!("../tests/reference.in");

    #[test]
    fn names_indices_and_seeds_make_unrelated_streams() {
        let root = Stream::new(1, "a");
        let mut streams = [
            root.clone(),
            Stream::new(2, "a"),
            Stream::new(1, "b"),
            Stream::new(1, "ab"),
            root.child("a", 0),
            root.child("a", 1),
            root.child("b", 0),
            root.child("a", 0).child("a", 0),
        ];
        // Equal draws at any of 64 positions, or a mean exclusive-or far from 32 set bits, would show a relation.
        for left in 0..streams.len() {
            for right in 0..left {
                let mut set = 0;
                for position in 0..64 {
                    let difference = streams[left].at(position) ^ streams[right].at(position);
                    assert_ne!(difference, 0);
                    set += difference.count_ones();
                }
                // 4096 fair bits: standard deviation 32; six of them.
                assert!(set.abs_diff(2048) < 192, "{left} and {right}: {set}");
            }
        }
        let before = streams[0].child("x", 0);
        streams[0].u64();
        assert_eq!(streams[0].child("x", 0), before);
    }

    proptest! {
        #[test]
        fn random_access_seek_and_sequence_agree(seed: u64, start in 0..1_u64 << 40, count in 1..20_u64) {
            let mut stream = Stream::new(seed, "access");
            stream.seek(start);
            for offset in 0..count {
                prop_assert_eq!(stream.position(), start + offset);
                let expected = stream.at(start + offset);
                prop_assert_eq!(stream.u64(), expected);
            }
            let mut again = Stream::new(seed, "access");
            again.seek(stream.position());
            prop_assert_eq!(again.u64(), stream.u64());
        }
    }
}
