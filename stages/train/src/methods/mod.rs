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

use provenir_execution::{Context, Failure};
use provenir_kinds::train::{self, FilterBy, NoisyForm, Objective, RobustKind, TrainParameters};
use provenir_nn::{NnError, Robust};

use crate::cloning::{Cloning, Setting};
use crate::data::Data;
use crate::method::Method;
use crate::partition::Partition;
use crate::run::failure;
use bc::{LearntLikelihood, LeastSquares, Loss};
use co_teaching::{CoTeaching, CoTeachingSettings};
use filter::{By, Filter, FilterSettings};
use mixture::{Mixture, MixtureSettings};
use noisy_bc::noisy_bc;
use range_filter::range_filter;
use rbc::{Rbc, RbcSettings};
use robust_loss::{RobustLoss, Scale};
use trimmed::Trimmed;

/// The method that is asked for, before its first step.
pub(crate) fn method<'a>(
    parameters: &TrainParameters,
    setting: &Setting<'a>,
    context: &Context<'_>,
) -> Result<Box<dyn Method + 'a>, Failure> {
    let data = setting.data;
    let nll = &parameters.nll;
    let loss = match parameters.loss {
        train::Loss::Mse => Loss::SquaredError,
        train::Loss::Nll => Loss::Likelihood(nll.sigma),
    };
    let made = match parameters.method {
        train::Method::Bc if parameters.loss == train::Loss::Nll && nll.learned => {
            LearntLikelihood::new(setting, nll.sigma, nll.floor)
                .and_then(|rule| Cloning::new(setting, 1, rule))
                .map(boxed)
        }
        train::Method::Bc => LeastSquares::new(loss, data)
            .and_then(|rule| Cloning::new(setting, 1, rule))
            .map(boxed),
        train::Method::Rbc => {
            let settings = rbc_settings(parameters, loss, data.samples, context)?;
            Rbc::new(setting, settings).map(boxed)
        }
        train::Method::NoisyBc => {
            let settings = &parameters.noisy_bc;
            let committee = match settings.form {
                NoisyForm::Paper => 1,
                NoisyForm::Published => settings.members as usize,
            };
            check_parts(committee, data.samples, "noisy_bc.members")?;
            let rounds = u64::from(settings.rounds);
            noisy_bc(setting, committee, rounds, settings.sigma_floor).map(boxed)
        }
        train::Method::Trimmed => {
            let settings = &parameters.trimmed;
            Trimmed::new(data, settings.share(), settings.among == train::Among::Epoch)
                .and_then(|rule| Cloning::new(setting, 1, rule))
                .map(boxed)
        }
        train::Method::Mixture => {
            let settings = MixtureSettings {
                epsilon: parameters.mixture.assumed_epsilon,
                learn_epsilon: parameters.mixture.learn_epsilon,
                sigma_floor: parameters.mixture.sigma_floor,
            };
            Mixture::new(data, settings)
                .and_then(|rule| Cloning::new(setting, 1, rule))
                .map(boxed)
        }
        train::Method::RobustLoss => robust_loss(&parameters.robust_loss, data)
            .and_then(|rule| Cloning::new(setting, 1, rule))
            .map(boxed),
        train::Method::CoTeaching => {
            let settings = CoTeachingSettings {
                epsilon: parameters.co_teaching.assumed_epsilon,
                ramp: u64::from(parameters.co_teaching.ramp),
            };
            CoTeaching::new(setting, settings).map(boxed)
        }
        train::Method::Filter => {
            let settings = filter_settings(parameters, setting, context)?;
            Filter::new(setting, settings).map(boxed)
        }
        train::Method::RangeFilter => return range_filter(setting, parameters.range_filter.bound, context),
    };
    made.map_err(failure)
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

fn filter_settings(
    parameters: &TrainParameters,
    setting: &Setting<'_>,
    context: &Context<'_>,
) -> Result<FilterSettings, Failure> {
    let settings = &parameters.filter;
    let samples = setting.data.samples;
    let by = match settings.by {
        FilterBy::CrossFit => {
            check_parts(settings.folds as usize, samples, "filter.folds")?;
            By::CrossFit(settings.folds as usize)
        }
        FilterBy::Rbc => By::Rbc(rbc_settings(parameters, Loss::SquaredError, samples, context)?),
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

fn rbc_settings(
    parameters: &TrainParameters,
    loss: Loss,
    samples: usize,
    context: &Context<'_>,
) -> Result<RbcSettings, Failure> {
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
    context.info(format!(
        "chunks of {chunk} samples make {} blocks of {block}, of which the {} around the median one give the gradient",
        partition.blocks, partition.window
    ));
    let clean = (1.0 - rbc.assumed_epsilon).powi(block.try_into().unwrap_or(i32::MAX));
    if clean <= 0.5 {
        context.warn(format!(
            "with a share of {} outliers only {:.0} % of blocks of {block} are free of them: the median block is likely \
             not to be; give a smaller `rbc.block`",
            rbc.assumed_epsilon,
            100.0 * clean
        ));
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
