//! A training as bytes: a mark, the fields of [`State`] in a fixed order, little-endian, every sequence after its length,
//! and the BLAKE3 of all that.

use provenir_api::Digest;

use crate::learner::LearnerState;
use crate::method::Counts;
use crate::state::{Journal, State};

/// Changes whenever the format does; a checkpoint with another is not read.
const MARK: &[u8; 16] = b"provenir train 1";

/// The name of the checkpoint within its cell's.
pub(crate) const NAME: &str = "training";

trait Number: Copy {
    const SIZE: usize;
    fn write(self, bytes: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            const SIZE: usize = size_of::<Self>();

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(f32, f64, u64);

/// The bytes of a training.
pub(crate) fn encode(state: &State) -> Vec<u8> {
    fn sequence<T: Number>(bytes: &mut Vec<u8>, values: &[T]) {
        (values.len() as u64).write(bytes);
        for value in values {
            value.write(bytes);
        }
    }

    let mut bytes = MARK.to_vec();
    let State {
        epochs,
        journal,
        counts,
        learners,
        kept,
    } = state;
    epochs.write(&mut bytes);
    let Journal {
        loss,
        norm,
        median,
        validation,
        rate,
        seconds,
    } = journal;
    for column in [loss, norm, median, validation, rate, seconds] {
        sequence(&mut bytes, column);
    }
    sequence(&mut bytes, &counts.drawn);
    sequence(&mut bytes, &counts.selected);
    (learners.len() as u64).write(&mut bytes);
    for learner in learners {
        sequence(&mut bytes, &learner.networks);
        sequence(&mut bytes, &learner.mean);
        sequence(&mut bytes, &learner.square);
        learner.steps.write(&mut bytes);
    }
    (kept.len() as u64).write(&mut bytes);
    for (epoch, networks) in kept {
        epoch.write(&mut bytes);
        sequence(&mut bytes, networks);
    }
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(digest.bytes());
    bytes
}

/// The training that these bytes are of; nothing where they are damaged or of another format.
pub(crate) fn decode(bytes: &[u8]) -> Option<State> {
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<Digest>())?)?;
    if Digest::of(body).bytes() != digest {
        return None;
    }
    let mut reader = Reader(body.strip_prefix(MARK)?);
    let state = State {
        epochs: reader.number()?,
        journal: Journal {
            loss: reader.sequence()?,
            norm: reader.sequence()?,
            median: reader.sequence()?,
            validation: reader.sequence()?,
            rate: reader.sequence()?,
            seconds: reader.sequence()?,
        },
        counts: Counts {
            drawn: reader.sequence()?,
            selected: reader.sequence()?,
        },
        learners: reader.several(|reader| {
            Some(LearnerState {
                networks: reader.sequence()?,
                mean: reader.sequence()?,
                square: reader.sequence()?,
                steps: reader.number()?,
            })
        })?,
        kept: reader.several(|reader| Some((reader.number()?, reader.sequence()?)))?,
    };
    reader.0.is_empty().then_some(state)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number<T: Number>(&mut self) -> Option<T> {
        let (number, rest) = self.0.split_at_checked(T::SIZE)?;
        self.0 = rest;
        T::read(number)
    }

    fn sequence<T: Number>(&mut self) -> Option<Vec<T>> {
        let length = usize::try_from(self.number::<u64>()?)
            .ok()?
            .checked_mul(T::SIZE)?;
        let (values, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        values.chunks_exact(T::SIZE).map(T::read).collect()
    }

    /// What is read takes at least a byte each, so that a false count ends with the bytes.
    fn several<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number::<u64>()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state() -> State {
        let learner = |shift: f32| LearnerState {
            networks: vec![1.5 + shift, -0.0],
            mean: vec![f32::MIN_POSITIVE],
            square: vec![],
            steps: 9,
        };
        State {
            epochs: 3,
            journal: Journal {
                loss: vec![0.1, 0.2],
                norm: vec![3.0],
                median: vec![],
                validation: vec![0.5],
                rate: vec![1e-3],
                seconds: vec![7.25],
            },
            counts: Counts {
                drawn: vec![1, 2, 3],
                selected: vec![0, u64::MAX, 1],
            },
            learners: vec![learner(0.0), learner(1.0)],
            kept: vec![(2, vec![0.25])],
        }
    }

    #[test]
    fn a_training_comes_back_from_its_bytes() {
        for state in [State::default(), state()] {
            assert_eq!(decode(&encode(&state)), Some(state));
        }
    }

    #[test]
    fn a_training_of_another_format_is_not_read() {
        let mut bytes = encode(&state());
        bytes[15] = b'2';
        let body = bytes.len() - size_of::<Digest>();
        let digest = Digest::of(&bytes[..body]);
        bytes[body..].copy_from_slice(digest.bytes());
        assert_eq!(decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_not_read(place: prop::sample::Index, flip in 1..=255_u8, cut: prop::sample::Index) {
            let whole = encode(&state());
            let mut bytes = whole.clone();
            bytes[place.index(whole.len())] ^= flip;
            prop_assert_eq!(decode(&bytes), None);
            prop_assert_eq!(decode(&whole[..cut.index(whole.len())]), None);
        }

        #[test]
        fn false_lengths_under_a_right_digest_do_no_harm(place: prop::sample::Index, value: u8) {
            let mut bytes = encode(&state());
            let body = bytes.len() - size_of::<Digest>();
            bytes[place.index(body)] = value;
            let digest = Digest::of(&bytes[..body]);
            bytes[body..].copy_from_slice(digest.bytes());
            let _ = decode(&bytes);
        }
    }
}
