use camino::Utf8Path;
use provenir_api::Problem;
use provenir_kinds::render::Format;
use rustix::fs::{Access, access};
use serde_json::{Map, Value, json};

use super::arguments::{AgentArguments, RenderArguments};
use super::error::{CommandError, Exit};
use super::reference::find;
use super::{Edition, environment, policy, run, session, terminal};
use crate::clock;
use crate::display::Mode;
use crate::plan::Single;
use crate::store::Store;

const KIND: &str = "render";

/// `render`: a plan of one stage, which the engine works through as any other.
pub(super) fn render(edition: &Edition, arguments: &RenderArguments) -> Result<Exit, CommandError> {
    let began = clock::instant();
    let out = environment::working_folder()?.join(&arguments.out);
    let format = format(&out)?;
    check_place(&arguments.out, &out)?;
    let mut parameters = policy_parameters(edition, arguments)?;
    parameters.insert("format".to_owned(), json!(format));
    for (name, number) in [
        ("checkpoint", &arguments.checkpoint),
        ("seed", &arguments.seed),
        ("trial", &arguments.trial),
        ("steps", &arguments.steps),
        ("fps", &arguments.fps),
        ("speed", &arguments.speed),
        ("width", &arguments.width),
        ("height", &arguments.height),
    ] {
        if let Some(number) = number {
            parameters.insert(name.to_owned(), Value::Number(number.clone()));
        }
    }
    if let Some(title) = &arguments.title {
        parameters.insert("title".to_owned(), title.as_str().into());
    }
    let registry = edition.registry();
    let kind = registry
        .get(KIND)
        .ok_or_else(|| CommandError::request("this edition of the command draws no animations"))?;
    let resolved = kind
        .resolve(&Value::Object(parameters))
        .map_err(|problems| wrong(&problems))?;
    let plan = Single {
        name: KIND,
        kind: kind.clone(),
        parameters: resolved,
        port: "animation",
        out,
    }
    .plan();
    let store = Store::create(session::root(&arguments.reference.manifest)?)?;
    let mode = if arguments.quiet {
        Mode::Quiet
    } else {
        Mode::Unlisted
    };
    let exit = run::carry_out(
        edition,
        &plan,
        &store,
        run::Manner {
            mode,
            ..run::Manner::default()
        },
        began,
    )?;
    if exit == Exit::Done {
        terminal::print(&format!("{}\n", arguments.out))?;
    }
    Ok(exit)
}

/// The format that a file's name asks for.
fn format(out: &Utf8Path) -> Result<Format, CommandError> {
    let extension = out.extension().map(str::to_ascii_lowercase);
    extension.as_deref().and_then(Format::of).ok_or_else(|| {
        CommandError::request(format!(
            "`{}` is no animation by its name",
            out.file_name().unwrap_or(out.as_str())
        ))
        .help("let it end in .gif, in .apng or .png (animated PNG), or in .svg (animated SVG)")
    })
}

/// That a file can be written there, before anything is drawn.
fn check_place(shown: &Utf8Path, out: &Utf8Path) -> Result<(), CommandError> {
    if out.is_dir() {
        return Err(CommandError::request(format!("`{shown}` is a folder")).help("name a file in it"));
    }
    session::check_folder(out)?;
    let folder = out.parent().unwrap_or(out);
    access(folder.as_std_path(), Access::WRITE_OK).map_err(|error| CommandError::Environment {
        message: format!(
            "cannot write to the folder `{}`: {}",
            session::short(folder),
            std::io::Error::from(error)
        ),
        help: Some("name a file elsewhere with --out".to_owned()),
    })
}

/// The policy as a parameter: it is read here, too, so that what is wrong with it is told at once, and because it says which
/// environment it is for.
fn policy_parameters(
    edition: &Edition,
    arguments: &RenderArguments,
) -> Result<Map<String, Value>, CommandError> {
    let found = find(edition, &arguments.reference)?;
    let given = &arguments.agent;
    let is_archive = policy::Format::of(&found.path)? == policy::Format::Archive;
    let told = AgentArguments {
        env: given.env.clone().filter(|_| is_archive),
        ..given.clone()
    };
    let loaded = policy::load(&found, &told)?;
    loaded.check_complete(&found.path)?;
    loaded.check_fits(&found.path)?;
    let environment = &loaded.policies.last().about().environment;
    if let Some(env) = given.env.as_ref().filter(|env| *env != environment) {
        return Err(CommandError::request(format!(
            "the policy was made for the environment `{environment}`, not for `{env}`"
        ))
        .help("leave --env out: the policy says it itself"));
    }
    let here = environment::working_folder()?;
    let path = |path: &Utf8Path| Value::from(here.join(path).into_string());
    let mut parameters = Map::new();
    parameters.insert("env".to_owned(), environment.as_str().into());
    parameters.insert("policy".to_owned(), path(&found.path));
    if let Some(file) = &given.normalization {
        parameters.insert("normalization".to_owned(), path(file));
    }
    if let Some(activation) = given.activation {
        parameters.insert("activation".to_owned(), activation.to_string().into());
    }
    if given.time_feature == Some(true) {
        parameters.insert("time_feature".to_owned(), true.into());
    }
    Ok(parameters)
}

/// Problems with parameters, each said of the option that gave it.
fn wrong(problems: &[Problem]) -> CommandError {
    let said = problems
        .iter()
        .map(|problem| match problem.pointer.strip_prefix('/') {
            Some(name) if !name.is_empty() => format!("--{}: {}", name.replace('_', "-"), problem.message),
            _ => problem.message.clone(),
        });
    let error = CommandError::request(said.collect::<Vec<_>>().join("; "));
    match problems.iter().find_map(|problem| problem.help.as_ref()) {
        Some(help) => error.help(help.clone()),
        None => error,
    }
}
