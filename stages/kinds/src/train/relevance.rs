//! Which parameters go together, and which matter.

use provenir_api::{Parameters, Problem};

use super::{FilterBy, Loss, Method, NoisyForm, Objective, RobustKind, Schedule, TrainParameters};

impl TrainParameters {
    /// Whether τ̂ is measured.
    fn measures_tau(&self) -> bool {
        self.method == Method::Rbc && self.rbc.objective == Objective::MinMax && self.rbc.tau_steps > 0
    }

    /// Whether the settings of `rbc` matter.
    pub(super) fn uses_rbc(&self) -> bool {
        self.method == Method::Rbc || self.method == Method::Filter && self.filter.by == FilterBy::Rbc
    }

    fn irrelevant_to_rbc(&self, irrelevant: &mut Vec<&'static str>) {
        if !self.uses_rbc() {
            irrelevant.push("/rbc");
            return;
        }
        if self.rbc.block.is_some() {
            irrelevant.push("/rbc/block_max");
            if self.rbc.window.is_some() {
                irrelevant.push("/rbc/assumed_epsilon");
            }
        }
        if self.method != Method::Rbc || self.rbc.objective == Objective::Direct {
            irrelevant.push("/rbc/tau_steps");
        }
    }

    fn irrelevant_to_loss(&self, irrelevant: &mut Vec<&'static str>) {
        let chosen = matches!(self.method, Method::Bc | Method::Rbc);
        if !chosen {
            irrelevant.push("/loss");
        }
        let likelihood = chosen && self.loss == Loss::Nll;
        if !likelihood && !self.measures_tau() {
            irrelevant.push("/nll");
        } else if !likelihood {
            irrelevant.extend(["/nll/learned", "/nll/floor"]);
        } else if !self.nll.learned {
            irrelevant.push("/nll/floor");
        }
    }

    fn irrelevant_to_rivals(&self, irrelevant: &mut Vec<&'static str>) {
        let tables = [
            (Method::NoisyBc, "/noisy_bc"),
            (Method::Trimmed, "/trimmed"),
            (Method::Mixture, "/mixture"),
            (Method::RobustLoss, "/robust_loss"),
            (Method::CoTeaching, "/co_teaching"),
            (Method::Filter, "/filter"),
            (Method::RangeFilter, "/range_filter"),
        ];
        let others = tables.into_iter().filter(|(method, _)| *method != self.method);
        irrelevant.extend(others.map(|(_, table)| table));
        match self.method {
            Method::NoisyBc if self.noisy_bc.form == NoisyForm::Paper => irrelevant.push("/noisy_bc/members"),
            Method::Trimmed if self.trimmed.keep.is_some() => {
                irrelevant.extend(["/trimmed/assumed_epsilon", "/trimmed/margin"]);
            }
            Method::RobustLoss => {
                if self.robust_loss.scale.is_some() {
                    irrelevant.push("/robust_loss/scale_floor");
                }
                if self.robust_loss.loss != RobustKind::StudentT {
                    irrelevant.push("/robust_loss/freedom");
                }
            }
            Method::Filter if self.filter.by != FilterBy::CrossFit => irrelevant.push("/filter/folds"),
            _ => {}
        }
    }
}

impl Parameters for TrainParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |pointer: &str, beside: &[&'static str], message: String| {
            problems.push(Problem::new(pointer, message).beside(beside.iter().copied()));
        };
        let (block, chunk) = (self.rbc.block_size(), self.rbc.chunk);
        if self.uses_rbc() && chunk != 0 && block > chunk {
            problem(
                "/rbc/chunk",
                &["/rbc/block", "/rbc/assumed_epsilon", "/rbc/block_max", "/method"],
                format!("a chunk of {chunk} samples does not hold a block of {block}"),
            );
        }
        if self.method == Method::Rbc && self.loss == Loss::Nll && self.nll.learned {
            problem(
                "/nll/learned",
                &["/method", "/loss"],
                "`rbc` takes a fixed deviation only: blocks rank by differences of likelihoods, and a learnt deviation \
                 makes these unbounded, so that which block is the median one would be up to the deviations"
                    .to_owned(),
            );
        }
        if self.learning_rate * self.weight_decay >= 1.0 {
            problem(
                "/weight_decay",
                &["/learning_rate"],
                format!(
                    "{} at the step size {} takes all that there is of a parameter at the first step: their product is to be below 1",
                    self.weight_decay, self.learning_rate
                ),
            );
        }
        if self.method == Method::NoisyBc && self.noisy_bc.rounds > self.epochs {
            problem(
                "/noisy_bc/rounds",
                &["/epochs", "/method"],
                format!(
                    "{} rounds do not go into {} epochs: each takes at least one",
                    self.noisy_bc.rounds, self.epochs
                ),
            );
        }
        if self.method == Method::Trimmed && self.trimmed.share() <= 0.0 {
            problem(
                "/trimmed/margin",
                &["/trimmed/assumed_epsilon", "/method"],
                format!(
                    "nothing is left to learn from where {} and {} are left out",
                    self.trimmed.assumed_epsilon, self.trimmed.margin
                ),
            );
        }
        if self.method == Method::Filter && self.epochs < 2 {
            problem(
                "/epochs",
                &["/method"],
                "a filter takes at least two epochs: one to judge in, and one to learn in".to_owned(),
            );
        }
        problems
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        // Where it is computed is recorded, not keyed: `--strict-platform` is for those who want it keyed.
        let mut irrelevant = vec!["/device"];
        self.irrelevant_to_rbc(&mut irrelevant);
        self.irrelevant_to_loss(&mut irrelevant);
        self.irrelevant_to_rivals(&mut irrelevant);
        if self.schedule == Schedule::Constant {
            irrelevant.push("/final_share");
        }
        if !self.standardize {
            irrelevant.push("/standardize_floor");
        }
        irrelevant
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_weight_decay_that_leaves_nothing_of_a_parameter_is_a_problem() {
        let problems = |rate: f64, decay: f64| {
            let parameters = json!({
                "method": "bc", "epochs": 1, "learning_rate": rate, "weight_decay": decay,
            });
            serde_json::from_value::<TrainParameters>(parameters)
                .unwrap()
                .problems()
                .len()
        };
        assert_eq!(problems(1e-2, 99.0), 0);
        assert_eq!(problems(1e-2, 100.0), 1);
        assert_eq!(problems(1.0, 2.0), 1);
    }
}
