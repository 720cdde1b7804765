//! A training as checkpoints: a small head that is replaced as a whole, and the transitions of the replay buffer in parts
//! that are written once.
//!
//! The head names every part by its digest. A part counts once a head names it, so that what an attempt left that ended
//! between the two is of no effect: the next attempt writes over it.

use provenir_api::Digest;
use provenir_execution::{Coded, Context, Failure, coded};

use crate::journal::Journal;
use crate::replay::Replay;
use crate::sampler::{LaneState, SamplerState};

/// Changes whenever the format does; a checkpoint with another is not read.
const MARK: &[u8; 17] = b"provenir expert 2";

/// The name of the head within its cell's checkpoints.
pub(crate) const HEAD: &str = "training";

/// A training after some steps of the environments and the updates that belong to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Steps of each environment.
    pub(crate) rounds: u64,
    pub(crate) updates: u64,
    pub(crate) sampler: SamplerState,
    /// What the learner gave to be saved.
    pub(crate) learner: Vec<u8>,
    pub(crate) journal: Journal,
    /// The best policies so far, best first; of equals the earlier.
    pub(crate) best: Vec<Candidate>,
    /// Wall-clock seconds of all attempts.
    pub(crate) seconds: f64,
    /// Transitions ever pushed into the replay buffer.
    pub(crate) pushed: u64,
    /// Where the transitions are that it holds, in order.
    pub(crate) parts: Vec<Part>,
}

/// A policy among the best so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Candidate {
    /// Environment steps before it.
    pub(crate) steps: u64,
    /// Mean return of its evaluation.
    pub(crate) mean: f64,
    /// Weights and biases, layer after layer.
    pub(crate) numbers: Vec<f32>,
}

/// Transitions `first` to before `end`, as they were pushed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// Of the bytes.
    pub(crate) digest: [u8; 32],
}

coded! {
    State { rounds, updates, sampler, learner, journal, best, seconds, pushed, parts }
    Candidate { steps, mean, numbers }
    Part { first, end, digest }
    SamplerState { begun, lanes, observations }
    LaneState { episode, actions }
}

impl Part {
    fn name(&self) -> String {
        format!("replay-{}", self.first)
    }
}

/// Leaves a checkpoint of the training: the transitions that the parts of the checkpoint before lack, then `state`, whose
/// parts it brings up to date.
pub(crate) fn save(state: &mut State, replay: &Replay, context: &Context<'_>) -> Result<(), Failure> {
    let held_from = replay.pushed() - replay.len();
    let saved = state.parts.last().map_or(0, |part| part.end);
    let first = saved.max(held_from);
    let mut parts = std::mem::take(&mut state.parts);
    if first < replay.pushed() {
        let mut bytes = Vec::new();
        for number in replay.rows_from(first) {
            number.write(&mut bytes);
        }
        let part = Part {
            first,
            end: replay.pushed(),
            digest: *Digest::of(&bytes).bytes(),
        };
        context.write_checkpoint(&part.name(), &bytes)?;
        parts.push(part);
    }
    let (current, outdated): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.end > held_from);
    state.parts = current;
    state.pushed = replay.pushed();
    context.write_checkpoint(HEAD, &encode(state))?;
    // Only now: until then the head before this one named them.
    for part in outdated {
        context.remove_checkpoint(&part.name())?;
    }
    Ok(())
}

/// What an earlier attempt left: a training, and a replay buffer that was `empty` before. `Err(None)` where there is
/// nothing, `Err(Some)` says why what there is cannot be used.
pub(crate) fn load(
    empty: Replay,
    context: &Context<'_>,
) -> Result<Result<(State, Replay), Option<&'static str>>, Failure> {
    let Some(bytes) = context.read_checkpoint(HEAD)? else {
        return Ok(Err(None));
    };
    let Some(state) = decode(&bytes) else {
        return Ok(Err(Some("is damaged or of another version")));
    };
    let held_from = state.pushed.saturating_sub(empty.capacity());
    let mut rows = Vec::new();
    let mut next = None;
    for part in &state.parts {
        let bytes = context.read_checkpoint(&part.name())?;
        let Some(bytes) = bytes.filter(|bytes| *Digest::of(bytes).bytes() == part.digest) else {
            return Ok(Err(Some("has lost transitions, or they are damaged")));
        };
        if next.is_some_and(|next| next != part.first) {
            return Ok(Err(Some("lacks transitions")));
        }
        next = Some(part.end);
        let mut numbers = bytes.as_slice();
        while let Some(number) = f32::read(&mut numbers) {
            rows.push(number);
        }
    }
    let first = state.parts.first().map_or(0, |part| part.first);
    let surplus = held_from.checked_sub(first).and_then(|count| {
        let numbers = usize::try_from(count).ok()?.checked_mul(empty.width())?;
        rows.get(numbers..)
    });
    let whole = next.unwrap_or(0) == state.pushed;
    match surplus
        .filter(|_| whole)
        .and_then(|rows| empty.restored(state.pushed, rows))
    {
        Some(replay) => Ok(Ok((state, replay))),
        None => Ok(Err(Some("lacks transitions"))),
    }
}

/// Removes what makes a checkpoint count.
pub(crate) fn discard(context: &Context<'_>) -> Result<(), Failure> {
    context.remove_checkpoint(HEAD)
}

fn encode(state: &State) -> Vec<u8> {
    provenir_execution::encode(MARK, state)
}

fn decode(bytes: &[u8]) -> Option<State> {
    provenir_execution::decode(MARK, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::journal::{Evaluation, Told};
    use crate::sampler::Ended;

    fn state() -> State {
        let mut journal = Journal::default();
        let told = |loss| Told {
            critic_loss: loss,
            policy_loss: None,
            temperature: 0.5,
            entropy: Some(-0.0),
        };
        journal.updated(told(2.0), 1.0);
        journal.ended(&[Ended { total_reward: 3.0 }]);
        journal.evaluated(7, 8, 9, Evaluation::default(), 1.5);
        journal.updated(told(4.0), 0.25);
        State {
            rounds: 3,
            updates: u64::MAX,
            sampler: SamplerState {
                begun: 2,
                lanes: vec![
                    LaneState::default(),
                    LaneState {
                        episode: 1,
                        actions: vec![0.5, f32::MIN_POSITIVE],
                    },
                ],
                observations: vec![1.0],
            },
            learner: vec![1, 2, 255],
            journal,
            best: vec![Candidate {
                steps: 7,
                mean: -1.0,
                numbers: vec![0.25],
            }],
            seconds: 0.125,
            pushed: 12,
            parts: vec![Part {
                first: 4,
                end: 12,
                digest: [7; 32],
            }],
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
        bytes[MARK.len() - 1] = b'1';
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
