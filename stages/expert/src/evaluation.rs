use provenir_execution::{Context, Failure};
use provenir_policy::Policy;
use provenir_sim::{Episode, Rollouts, SimError, Task};

use crate::journal::Evaluation;

/// Plays the episodes of these seeds, at least one, with the policy.
pub(crate) fn evaluate(
    task: &Task,
    policy: &Policy,
    seeds: &[u64],
    context: &Context<'_>,
) -> Result<Evaluation, Failure> {
    let rollouts = Rollouts {
        threads: context.cores(),
        ..Rollouts::of(task, policy)
    };
    let episodes = rollouts
        .run_policy(policy, seeds, |_| context.check_cancelled().is_ok())
        .map_err(|error| match error {
            SimError::Stopped => Failure::cancelled(),
            error => Failure::stage(format!("the policy cannot be evaluated: {error}")),
        })?;
    Ok(summary(&episodes))
}

fn summary(episodes: &[Episode]) -> Evaluation {
    let count = episodes.len() as f64;
    let returns = || episodes.iter().map(|episode| episode.total_reward);
    let mean = returns().sum::<f64>() / count;
    let squares: f64 = returns().map(|value| (value - mean) * (value - mean)).sum();
    let steps: u64 = episodes.iter().map(|episode| u64::from(episode.length)).sum();
    Evaluation {
        mean,
        std: (squares / (count - 1.0).max(1.0)).sqrt(),
        min: returns().fold(f64::INFINITY, f64::min),
        length: steps as f64 / count,
        falls: episodes.iter().map(|episode| u32::from(episode.terminated)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_are_summed_up() {
        let episode = |total_reward, length| Episode {
            seed: 0,
            discounted_reward: 0.0,
            total_reward,
            length,
            terminated: length < 1000,
            truncated: length == 1000,
            transitions: None,
        };
        let episodes = [episode(1.0, 10), episode(4.0, 1000), episode(-2.0, 40)];
        let expected = Evaluation {
            mean: 1.0,
            std: 3.0,
            min: -2.0,
            length: 350.0,
            falls: 2,
        };
        assert_eq!(summary(&episodes), expected);
        assert_eq!(summary(&episodes[..1]).std.to_bits(), 0.0_f64.to_bits());
    }
}
