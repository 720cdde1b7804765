//! The methods, a module each: what is special to it. What they share is in `cloning`, `student`, `order` and `sweep`.

pub(crate) mod bc;
mod co_teaching;
mod filter;
mod mixture;
mod noisy_bc;
mod range_filter;
pub(crate) mod rbc;
mod robust_loss;
mod sample;
mod trimmed;

use std::ops::Range;

use provenir_execution::{Context, Failure};
use provenir_kinds::train::{self, FilterBy, NoisyForm, Objective, RobustKind, TrainParameters};
use provenir_nn::{NnError, Robust};

use crate::cloning::{Cloning, Setting, Share};
use crate::data::Data;
use crate::method::Method;
use crate::partition::Partition;
use crate::run::failure;
use bc::{LearntLikelihood, LeastSquares, Loss};
use co_teaching::{CoTeaching, CoTeachingSettings};
use filter::{By, Filter, FilterSettings};
use mixture::{Mixture, MixtureSettings};
use noisy_bc::noisy_bc;
use range_filter::within;
use rbc::{Rbc, RbcSettings};
use robust_loss::{RobustLoss, Scale};
use trimmed::Trimmed;

/// A policy that is to be learnt: what is asked for, and who is told of it.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) parameters: &'a TrainParameters,
    pub(crate) context: &'a Context<'a>,
}

/// Whether one rule is for both, of methods that are rules for minibatches.
pub(crate) fn is_alike(left: &TrainParameters, right: &TrainParameters) -> bool {
    left.method == right.method
        && match left.method {
            train::Method::Bc => left.loss == right.loss && left.nll == right.nll,
            train::Method::Trimmed => left.trimmed == right.trimmed,
            train::Method::Mixture => left.mixture == right.mixture,
            train::Method::RobustLoss => left.robust_loss == right.robust_loss,
            train::Method::RangeFilter => left.range_filter == right.range_filter,
            train::Method::Rbc
            | train::Method::NoisyBc
            | train::Method::CoTeaching
            | train::Method::Filter => true,
        }
}

/// The method that is asked for, before its first step. Policies of methods that are rules for minibatches may have different
/// ones, those that are alike next to each other; what others ask for beside is the same.
pub(crate) fn method<'a>(
    wanted: &[Wanted<'_>],
    setting: &Setting<'a>,
) -> Result<Box<dyn Method + 'a>, Failure> {
    let Some(Wanted { parameters, .. }) = wanted.first() else {
        return Err(Failure::bug("no policy to learn"));
    };
    let samples = setting.data.samples;
    let made = match parameters.method {
        train::Method::Rbc => {
            let settings = rbc_settings(wanted, loss(parameters), samples)?;
            Rbc::new(setting, settings).map(boxed)
        }
        train::Method::NoisyBc => {
            let settings = &parameters.noisy_bc;
            let committee = match settings.form {
                NoisyForm::Paper => 1,
                NoisyForm::Published => settings.members as usize,
            };
            check_parts(committee, samples, "noisy_bc.members")?;
            let rounds = u64::from(settings.rounds);
            noisy_bc(setting, committee, rounds, settings.sigma_floor).map(boxed)
        }
        train::Method::CoTeaching => {
            let settings = CoTeachingSettings {
                epsilon: parameters.co_teaching.assumed_epsilon,
                ramp: u64::from(parameters.co_teaching.ramp),
            };
            CoTeaching::new(setting, settings).map(boxed)
        }
        train::Method::Filter => {
            let settings = filter_settings(wanted, setting)?;
            Filter::new(setting, settings).map(boxed)
        }
        train::Method::Bc
        | train::Method::Trimmed
        | train::Method::Mixture
        | train::Method::RobustLoss
        | train::Method::RangeFilter => return by_rules(wanted, setting).map(boxed),
    };
    made.map_err(failure)
}

/// Policies of methods that are rules for minibatches.
fn by_rules<'a>(wanted: &[Wanted<'_>], setting: &Setting<'a>) -> Result<Cloning<'a>, Failure> {
    let mut shares = Vec::new();
    let mut restricted = Vec::new();
    let mut start = 0;
    for alike in wanted.chunk_by(|left, right| is_alike(left.parameters, right.parameters)) {
        let members = start..start + alike.len();
        start = members.end;
        let parameters = alike[0].parameters;
        if parameters.method == train::Method::RangeFilter {
            let data = setting.data.part(&members).map_err(failure)?;
            restricted.push((
                members.start,
                within(alike, &data, parameters.range_filter.bound)?,
            ));
        }
        shares.push(share(parameters, members, setting.data)?);
    }
    let mut cloning = Cloning::shared(setting, 1, shares).map_err(failure)?;
    for (first, pools) in restricted {
        cloning.restrict(first, pools);
    }
    Ok(cloning)
}

/// The rule of a method, for some of the policies.
fn share(parameters: &TrainParameters, members: Range<usize>, data: &Data) -> Result<Share, Failure> {
    let nll = &parameters.nll;
    let share = match parameters.method {
        train::Method::Bc if parameters.loss == train::Loss::Nll && nll.learned => {
            Share::new(members, data, |data| {
                LearntLikelihood::new(data, nll.sigma, nll.floor)
            })
        }
        train::Method::Trimmed => {
            let settings = &parameters.trimmed;
            Share::new(members, data, |data| {
                Trimmed::new(data, settings.share(), settings.among == train::Among::Epoch)
            })
        }
        train::Method::Mixture => {
            let settings = MixtureSettings {
                epsilon: parameters.mixture.assumed_epsilon,
                learn_epsilon: parameters.mixture.learn_epsilon,
                sigma_floor: parameters.mixture.sigma_floor,
            };
            Share::new(members, data, |data| Mixture::new(data, settings))
        }
        train::Method::RobustLoss => {
            Share::new(members, data, |data| robust_loss(&parameters.robust_loss, data))
        }
        train::Method::Bc => Share::new(members, data, |data| LeastSquares::new(loss(parameters), data)),
        train::Method::RangeFilter => {
            Share::new(members, data, |data| LeastSquares::new(Loss::SquaredError, data))
        }
        method @ (train::Method::Rbc
        | train::Method::NoisyBc
        | train::Method::CoTeaching
        | train::Method::Filter) => {
            return Err(Failure::bug(format!(
                "`{}` does not learn together with `bc`",
                method.name()
            )));
        }
    };
    share.map_err(failure)
}

/// What `bc` and `rbc` minimise.
fn loss(parameters: &TrainParameters) -> Loss {
    match parameters.loss {
        train::Loss::Mse => Loss::SquaredError,
        train::Loss::Nll => Loss::Likelihood(parameters.nll.sigma),
    }
}

fn boxed<'a>(method: impl Method + 'a) -> Box<dyn Method + 'a> {
    Box::new(method)
}

fn robust_loss(settings: &train::RobustLoss, data: &Data) -> Result<RobustLoss, NnError> {
    let loss = match settings.loss {
        RobustKind::Huber => Robust::Huber,
        RobustKind::Norm => Robust::Norm,
        RobustKind::StudentT => Robust::StudentT,
        RobustKind::Welsch => Robust::Welsch,
    };
    let scale = match settings.scale {
        Some(scale) => Scale::Given(scale),
        None => Scale::Measured {
            floor: settings.scale_floor,
        },
    };
    let reach = |width: usize| match settings.loss {
        // Of a t distribution of scale s it is s √(ν/A).
        RobustKind::StudentT => settings.tuning() * (settings.freedom / width as f64).sqrt(),
        _ => settings.tuning(),
    };
    let reach = data.components().into_iter().map(reach).collect();
    RobustLoss::new(data, loss, reach, scale)
}

fn filter_settings(wanted: &[Wanted<'_>], setting: &Setting<'_>) -> Result<FilterSettings, Failure> {
    let settings = &wanted[0].parameters.filter;
    let samples = setting.data.samples;
    let by = match settings.by {
        FilterBy::CrossFit => {
            check_parts(settings.folds as usize, samples, "filter.folds")?;
            By::CrossFit(settings.folds as usize)
        }
        FilterBy::Rbc => By::Rbc(rbc_settings(wanted, Loss::SquaredError, samples)?),
    };
    let judging = (settings.judging * setting.epochs as f64).round() as u64;
    Ok(FilterSettings {
        judging: judging.clamp(1, setting.epochs - 1),
        epsilon: settings.assumed_epsilon,
        by,
    })
}

fn check_parts(parts: usize, samples: usize, parameter: &str) -> Result<(), Failure> {
    if parts <= samples {
        return Ok(());
    }
    Err(
        Failure::stage(format!("{samples} demonstrations do not make {parts} parts"))
            .help(format!("give a smaller `{parameter}`, or learn from more")),
    )
}

fn rbc_settings(wanted: &[Wanted<'_>], loss: Loss, samples: usize) -> Result<RbcSettings, Failure> {
    let parameters = wanted[0].parameters;
    let rbc = &parameters.rbc;
    let block = rbc.block_size() as usize;
    if block > samples {
        return Err(
            Failure::stage(format!("{samples} demonstrations do not make a block of {block}"))
                .help("give a smaller `rbc.block`, or learn from more"),
        );
    }
    let chunk = match rbc.chunk as usize {
        0 => samples,
        chunk => chunk.min(samples),
    };
    let partition = Partition::new(chunk, block, rbc.window_share());
    let clean = (1.0 - rbc.assumed_epsilon).powi(block.try_into().unwrap_or(i32::MAX));
    for Wanted { context, .. } in wanted {
        context.info(format!(
            "chunks of {chunk} samples make {} blocks of {block}, of which the {} around the median one give the gradient",
            partition.blocks, partition.window
        ));
        if clean <= 0.5 {
            context.warn(format!(
                "with a share of {} outliers only {:.0} % of blocks of {block} are free of them: the median block is likely \
                 not to be; give a smaller `rbc.block`",
                rbc.assumed_epsilon,
                100.0 * clean
            ));
        }
    }
    Ok(RbcSettings {
        challenger: rbc.objective == Objective::MinMax,
        partition,
        block,
        loss,
        tau_steps: u64::from(rbc.tau_steps),
        sigma: parameters.nll.sigma,
    })
}
