//! A training as a checkpoint.

use provenir_execution::coded;

use crate::learner::LearnerState;
use crate::method::Memory;
use crate::state::{Journal, State};

/// Changes whenever the format does; a checkpoint with another is not read.
const MARK: &[u8; 16] = b"provenir train 5";

/// The name of the checkpoint within its cell's.
pub(crate) const NAME: &str = "training";

coded! {
    State { epochs, journal, memories, kept }
    Journal { loss, norm, median, validation, sigma, effective, rate, seconds }
    Memory { learners, drawn, selected, values }
    LearnerState { networks, mean, square, steps }
}

/// The bytes of a training.
pub(crate) fn encode(state: &State) -> Vec<u8> {
    provenir_execution::encode(MARK, state)
}

/// The training that these bytes are of; nothing where they are damaged or of another format.
pub(crate) fn decode(bytes: &[u8]) -> Option<State> {
    provenir_execution::decode(MARK, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use provenir_api::Digest;

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
                sigma: vec![None, Some(0.1)],
                effective: vec![Some(30.5)],
                rate: vec![1e-3],
                seconds: vec![7.25],
            },
            memories: vec![Memory {
                learners: vec![learner(0.0), learner(1.0)],
                drawn: vec![1, 2, 3],
                selected: vec![0, u64::MAX, 1],
                values: vec![vec![], vec![0.5, f64::MIN_POSITIVE]],
            }],
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
        bytes[15] = b'1';
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
