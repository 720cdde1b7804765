use crate::sampler::Ended;
use provenir_execution::coded;

/// What was noted, evaluation by evaluation, and what waits for the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Journal {
    pub(crate) rows: Vec<Row>,
    pub(crate) since: Since,
}

/// An evaluation, and the training since the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// Environment steps before it.
    pub(crate) steps: u64,
    pub(crate) updates: u64,
    /// Training episodes that had ended.
    pub(crate) episodes: u64,
    pub(crate) evaluation: Evaluation,
    /// Mean return of the training episodes.
    pub(crate) training_return: Option<f64>,
    pub(crate) critic_loss: Option<f64>,
    pub(crate) policy_loss: Option<f64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) entropy: Option<f64>,
    /// Share of the learning rate at the last update.
    pub(crate) rate_share: Option<f64>,
    /// Wall-clock seconds since the start; those between attempts are left out.
    pub(crate) seconds: f64,
}

/// What the episodes of an evaluation gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evaluation {
    /// Mean return.
    pub(crate) mean: f64,
    /// Standard deviation of the returns (of a sample; 0 of a single one).
    pub(crate) std: f64,
    pub(crate) min: f64,
    /// Mean length, steps.
    pub(crate) length: f64,
    /// Episodes that terminated.
    pub(crate) falls: u32,
}

/// Sums since the last evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Since {
    training_return: Mean,
    critic_loss: Mean,
    policy_loss: Mean,
    temperature: Mean,
    entropy: Mean,
    rate_share: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

coded! {
    Journal { rows, since }
    Row {
        steps, updates, episodes, evaluation, training_return, critic_loss, policy_loss, temperature, entropy, rate_share,
        seconds,
    }
    Evaluation { mean, std, min, length, falls }
    Since { training_return, critic_loss, policy_loss, temperature, entropy, rate_share }
    Mean { sum, count }
}

/// What an update tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) critic_loss: f64,
    /// Where the policy was updated, too.
    pub(crate) policy_loss: Option<f64>,
    pub(crate) temperature: f64,
    pub(crate) entropy: Option<f64>,
}

impl Journal {
    /// Notes training episodes that ended.
    pub(crate) fn ended(&mut self, episodes: &[Ended]) {
        for episode in episodes {
            self.since.training_return.add(episode.total_reward);
        }
    }

    /// Notes an update.
    pub(crate) fn updated(&mut self, told: Told, rate_share: f64) {
        let since = &mut self.since;
        since.critic_loss.add(told.critic_loss);
        since.temperature.add(told.temperature);
        if let Some(loss) = told.policy_loss {
            since.policy_loss.add(loss);
        }
        if let Some(entropy) = told.entropy {
            since.entropy.add(entropy);
        }
        since.rate_share = Some(rate_share);
    }

    /// Notes an evaluation.
    pub(crate) fn evaluated(
        &mut self,
        steps: u64,
        updates: u64,
        episodes: u64,
        evaluation: Evaluation,
        seconds: f64,
    ) {
        let since = std::mem::take(&mut self.since);
        self.rows.push(Row {
            steps,
            updates,
            episodes,
            evaluation,
            training_return: since.training_return.get(),
            critic_loss: since.critic_loss.get(),
            policy_loss: since.policy_loss.get(),
            temperature: since.temperature.get(),
            entropy: since.entropy.get(),
            rate_share: since.rate_share,
            seconds,
        });
    }
}
