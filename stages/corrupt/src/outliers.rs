use provenir_execution::Failure;
use provenir_kinds::corrupt::{CorruptParameters, Outlier};
use provenir_random::Stream;
use provenir_table::demonstrations::Demonstrations;

use crate::choice::{Choice, by_episode, by_sample};
use crate::statistics::{moments, ranges};

/// The demonstrations with outliers at `rows`; `weaker` is what `weaker-policy` replaces episodes by.
pub(crate) fn corrupted(
    parameters: &CorruptParameters,
    clean: &Demonstrations,
    rows: &[usize],
    weaker: Option<&Demonstrations>,
) -> Result<Demonstrations, Failure> {
    let mut outliers = Outliers {
        seed: Stream::new(parameters.seed, "corrupt"),
        clean,
        rows,
        demos: clean.clone(),
    };
    match parameters.outlier {
        Outlier::Boundary => outliers.actions("boundary", |stream, action| {
            action.fill_with(|| sign(stream));
        }),
        Outlier::BoundaryOneSign => outliers.actions("boundary one sign", |stream, action| {
            action.fill(sign(stream));
        }),
        Outlier::Constant => outliers.actions("constant", |_, action| {
            action.fill(parameters.constant as f32);
        }),
        Outlier::RangeBoundary => {
            let ranges = ranges(&clean.action);
            outliers.actions("range boundary", |stream, action| {
                for (value, (least, largest)) in action.iter_mut().zip(&ranges) {
                    *value = if sign(stream) < 0.0 { *least } else { *largest };
                }
            });
        }
        Outlier::Uniform => outliers.actions("uniform", |stream, action| {
            action.fill_with(|| stream.uniform(-1.0, 1.0) as f32);
        }),
        Outlier::Gaussian => outliers.actions("gaussian", |stream, action| {
            for value in action {
                *value = (f64::from(*value) + parameters.noise * stream.normal()) as f32;
            }
        }),
        Outlier::SignFlip => outliers.actions("sign flip", |_, action| {
            for value in action {
                *value = -*value;
            }
        }),
        Outlier::Permuted => outliers.permute(&Choice::new(parameters.seed)),
        Outlier::Delayed => outliers.delay(parameters.delay as usize),
        Outlier::ObservationNoise => outliers.add_noise(parameters.noise),
        Outlier::DeadSensors => outliers.kill_sensors(parameters.sensors),
        Outlier::WeakerPolicy => match weaker {
            Some(weaker) => outliers.replace_episodes(weaker)?,
            None => return Err(Failure::bug("nothing arrived at the port `weaker`")),
        },
    }
    Ok(outliers.demos)
}

/// −1 or 1 with equal chances.
fn sign(stream: &mut Stream) -> f32 {
    if stream.u64() >> 63 == 0 { -1.0 } else { 1.0 }
}

struct Outliers<'a> {
    seed: Stream,
    clean: &'a Demonstrations,
    /// Those that become outliers, ascending.
    rows: &'a [usize],
    demos: Demonstrations,
}

impl Outliers<'_> {
    /// Changes every chosen action by itself; `name` is that of the model's draws, a stream for each sample.
    fn actions(&mut self, name: &str, change: impl Fn(&mut Stream, &mut [f32])) {
        let values = self.seed.child(name, 0);
        for row in self.rows {
            let mut stream = values.child("sample", self.clean.sample[*row]);
            change(&mut stream, self.demos.action.row_mut(*row));
        }
    }

    /// A cycle through the chosen samples: none keeps its action unless it is the only one.
    fn permute(&mut self, choice: &Choice) {
        let cycle = choice.ordered(&self.clean.sample, self.rows.to_vec());
        let next = cycle.iter().cycle().skip(1);
        for (row, next) in cycle.iter().zip(next) {
            self.demos
                .action
                .row_mut(*row)
                .copy_from_slice(self.clean.action.row(*next));
        }
    }

    fn delay(&mut self, steps: usize) {
        let mut chosen = vec![false; self.clean.rows()];
        for row in self.rows {
            chosen[*row] = true;
        }
        for rows in by_episode(self.clean).values() {
            for (step, row) in rows.iter().enumerate().filter(|(_, row)| chosen[**row]) {
                let before = rows[step.saturating_sub(steps)];
                self.demos
                    .action
                    .row_mut(*row)
                    .copy_from_slice(self.clean.action.row(before));
            }
        }
    }

    /// How many entries of an observation are measured: all but the time feature.
    fn sensors(&self) -> usize {
        self.clean.observation.width() - usize::from(self.clean.about.time_feature)
    }

    fn add_noise(&mut self, noise: f64) {
        let moments = moments(&self.clean.observation, &by_sample(&self.clean.sample));
        let values = self.seed.child("observation noise", 0);
        let sensors = self.sensors();
        for row in self.rows {
            let mut stream = values.child("sample", self.clean.sample[*row]);
            let observation = &mut self.demos.observation.row_mut(*row)[..sensors];
            for (value, moments) in observation.iter_mut().zip(&moments) {
                *value = (f64::from(*value) + noise * moments.deviation * stream.normal()) as f32;
            }
        }
    }

    fn kill_sensors(&mut self, share: f64) {
        /// A deviation of this size, beside values of size 1, is a few roundings of single precision.
        const ROUNDING: f64 = 1e-6;
        let sensors = self.sensors();
        let count = ((share * sensors as f64).round() as usize).max(1).min(sensors);
        let moments = moments(&self.clean.observation, &by_sample(&self.clean.sample));
        // In a random order, those that vary in front.
        let mut dead = self.seed.child("dead sensors", 0).permutation(sensors);
        dead.sort_by_key(|sensor| {
            let moments = &moments[*sensor];
            moments.deviation <= ROUNDING * moments.mean.abs().max(1.0)
        });
        dead.truncate(count);
        for row in self.rows {
            let observation = self.demos.observation.row_mut(*row);
            for sensor in &dead {
                observation[*sensor] = 0.0;
            }
        }
    }

    /// Fills every chosen episode with episodes of a weaker policy.
    fn replace_episodes(&mut self, weaker: &Demonstrations) -> Result<(), Failure> {
        check_alike(self.clean, weaker)?;
        let sources: Vec<Vec<usize>> = by_episode(weaker).into_values().collect();
        let values = self.seed.child("weaker policy", 0);
        let chosen = by_episode(&self.clean.select(self.rows));
        for (episode, rows) in chosen {
            if sources.is_empty() {
                return Err(Failure::stage(
                    "the demonstrations of the weaker policy are empty",
                ));
            }
            let mut stream = values.child("episode", u64::from(episode));
            let mut open = rows.iter().map(|chosen| self.rows[*chosen]).peekable();
            while open.peek().is_some() {
                for source in stream.permutation(sources.len()) {
                    let mut last = None;
                    for (from, to) in sources[source].iter().zip(open.by_ref()) {
                        copy(weaker, *from, &mut self.demos, to);
                        last = Some((*from, to));
                    }
                    // A weaker episode that goes on is cut.
                    if let Some((from, to)) = last
                        && sources[source].last() != Some(&from)
                    {
                        self.demos.truncated[to] = true;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Copies what happened, and not which sample it is.
fn copy(source: &Demonstrations, from: usize, target: &mut Demonstrations, to: usize) {
    let observation = source.observation.row(from);
    target.observation.row_mut(to).copy_from_slice(observation);
    target.action.row_mut(to).copy_from_slice(source.action.row(from));
    target.reward[to] = source.reward[from];
    target.terminated[to] = source.terminated[from];
    target.truncated[to] = source.truncated[from];
}

fn check_alike(clean: &Demonstrations, weaker: &Demonstrations) -> Result<(), Failure> {
    let said = |time_feature: bool| if time_feature { "with" } else { "without" };
    let mismatch = if clean.about.environment != weaker.about.environment {
        format!(
            "are of the environment `{}`, not `{}`",
            weaker.about.environment, clean.about.environment
        )
    } else if clean.about.time_feature != weaker.about.time_feature {
        format!(
            "are {} the time feature, those to corrupt {} it",
            said(weaker.about.time_feature),
            said(clean.about.time_feature)
        )
    } else if clean.observation.width() != weaker.observation.width() {
        format!(
            "have observations of {} entries, those to corrupt of {}",
            weaker.observation.width(),
            clean.observation.width()
        )
    } else if clean.action.width() != weaker.action.width() {
        format!(
            "have actions of {} entries, those to corrupt of {}",
            weaker.action.width(),
            clean.action.width()
        )
    } else {
        return Ok(());
    };
    Err(
        Failure::stage(format!("the demonstrations of the weaker policy {mismatch}"))
            .help("roll both policies out in one environment, both with the time feature or both without it"),
    )
}
