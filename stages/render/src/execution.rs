use gif::EncodingError;
use provenir_api::FigureIdentity;
use provenir_api::protocol::Progress;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::Environment;
use provenir_kinds::render::{Format, Render, RenderParameters};
use provenir_policy::{Policy, PolicySet};
use provenir_sim::{Task, trial_seed};

use crate::apng::{self, Apng};
use crate::episode::Episode;
use crate::film::Film;
use crate::frames::{self, Patches};
use crate::gif::{self as animated_gif, Gif};
use crate::raster::{Canvas, Pixels};
use crate::svg::{self, Svg};
use crate::view::View;

/// Draws an episode of a policy.
pub struct RenderExecution;

impl Execution for RenderExecution {
    type Kind = Render;

    fn execute(
        &self,
        parameters: &RenderParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let task = Task::named(parameters.env.name()).map_err(|error| Failure::bug(error.to_string()))?;
        let policies = provenir_policy_file::read(&parameters.source(), inputs, context, task)?;
        let policy = checkpoint(&policies, parameters.checkpoint)?;
        let seed = trial_seed(parameters.seed, parameters.trial);
        let episode = Episode::run(task, policy, seed, parameters.steps, context)?;
        context.info(format!(
            "{} steps, return {:.1}{}",
            episode.steps(),
            episode.moments.last().map_or(0.0, |moment| moment.total_reward),
            if episode.terminated {
                ", ended in a fall"
            } else {
                ""
            }
        ));
        let about = policy.about();
        let data = episode.table(task.name(), &about.method)?;
        let identity = FigureIdentity {
            action_key: context.action_key().to_owned(),
            data: data.content(),
        };
        let title = match &parameters.title {
            Some(title) => title.clone(),
            None if about.method.is_empty() => display_name(parameters.env).to_owned(),
            None => format!("{} · {}", display_name(parameters.env), about.method),
        };
        let view = View::new(Film::new(episode, task.limbs(), title, parameters));
        let animation = FigureIdentity::seal(draw(&view, parameters.format, identity, context)?);
        Ok(Outputs::new()
            .file_of("animation", parameters.format.extension(), animation)
            .table("data", data))
    }
}

fn checkpoint(policies: &PolicySet, wanted: Option<u32>) -> Result<&Policy, Failure> {
    let Some(number) = wanted else {
        return Ok(policies.last());
    };
    policies.get(number).ok_or_else(|| {
        let numbers = policies
            .checkpoints()
            .iter()
            .map(|(number, _)| number.to_string());
        Failure::stage(format!("the policy has no checkpoint {number}")).help(format!(
            "it has {}; the last one acts where `checkpoint` is left out",
            provenir_api::schema::list(numbers.collect::<Vec<_>>().iter().map(String::as_str))
        ))
    })
}

/// As PyBullet's tasks are called.
fn display_name(environment: Environment) -> &'static str {
    match environment {
        Environment::Hopper => "Hopper",
        Environment::Walker2D => "Walker2D",
        Environment::HalfCheetah => "HalfCheetah",
        Environment::Ant => "Ant",
    }
}

fn draw(
    view: &View,
    format: Format,
    identity: FigureIdentity,
    context: &Context<'_>,
) -> Result<Vec<u8>, Failure> {
    let film = view.film();
    let count = film.len();
    let step = |frame: usize| {
        context.progress(Progress {
            done: frame as u64,
            total: Some(count as u64),
            unit: "frames".to_owned(),
            ..Progress::default()
        });
        context.check_cancelled()
    };
    let delay = |frame: usize, parts: u32| film.begins(frame + 1, parts) - film.begins(frame, parts);
    if format == Format::Svg {
        let end = film.begins(count, svg::PARTS);
        let mut file = Svg::new(film.size, &film.title, end, identity);
        for frame in 0..count {
            step(frame)?;
            let times = [frame, frame + 1].map(|frame| film.begins(frame, svg::PARTS));
            file.frame(&view.frame(frame), times);
        }
        file.still(&view.still());
        return Ok(file.finish().into_bytes());
    }
    let blank = Canvas::new(film.size).ok_or_else(|| Failure::bug("a picture without extent"))?;
    let still = view.still();
    let paint = |frame: usize| -> Result<Pixels, Failure> {
        context.check_cancelled()?;
        let mut canvas = blank.clone();
        canvas.paint(&view.frame(frame));
        canvas.paint(&still);
        Ok(canvas.pixels())
    };
    let mut patches = Patches::new(frames::palette(count, paint)?, film.size);
    if format == Format::Apng {
        let mut file = Apng::new(film.size, patches.palette(), count as u32, &identity);
        for frame in 0..count {
            step(frame)?;
            file.frame(&patches.next(&paint(frame)?), delay(frame, apng::PARTS));
        }
        return Ok(file.finish());
    }
    let unwritten = |error: EncodingError| Failure::bug(format!("cannot write the GIF: {error}"));
    let mut file = Gif::new(film.size, patches.palette(), &identity).map_err(unwritten)?;
    for frame in 0..count {
        step(frame)?;
        file.frame(&patches.next(&paint(frame)?), delay(frame, animated_gif::PARTS))
            .map_err(unwritten)?;
    }
    file.finish().map_err(unwritten)
}
