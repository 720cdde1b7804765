//! `collect` from outside: an expert in, demonstrations out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::atomic::AtomicBool;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Blame, Failed, Level, Progress};
use provenir_api::{Digest, SourceFile};
use provenir_collect::CollectExecution;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::Environment;
use provenir_kinds::collect::CollectParameters;
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, PolicySet, Squash};
use provenir_random::Stream;
use provenir_table::demonstrations::Demonstrations;

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// A policy that lets Hopper fall after some steps.
fn policy(observations: usize, actions: usize, about: About) -> Policy {
    let weights = (0..observations * actions)
        .map(|index| ((index * 7 % 11) as f32 - 5.0) / 8.0)
        .collect();
    let layer = Layer::new(observations, actions, weights, vec![0.125; actions]).unwrap();
    let map = ActionMap {
        squash: Squash::Tanh,
        low: vec![-1.0; actions],
        high: vec![1.0; actions],
    };
    Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap()
}

fn hopper(time_feature: bool) -> Policy {
    let about = About {
        environment: "hopper".to_owned(),
        time_feature,
        method: "linear".to_owned(),
        ..About::default()
    };
    policy(15 + usize::from(time_feature), 3, about)
}

fn parameters(samples: Option<u64>, episodes: Option<u64>) -> CollectParameters {
    CollectParameters {
        env: Environment::Hopper,
        expert: None,
        normalization: None,
        activation: None,
        time_feature: None,
        samples,
        episodes,
        seed: 5,
    }
}

/// Runs with an expert at the port.
fn collect(expert: &Policy, parameters: &CollectParameters) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    let table = PolicySet::single(expert.clone()).to_table().unwrap();
    CollectExecution.execute(parameters, &Inputs::new().with_table("expert", table), &context)
}

/// Runs with files; each is given by the pointer of its parameter.
fn collect_files(parameters: &CollectParameters, files: &[(&str, &Utf8Path)]) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let mut context = Context::new(&Silent, &cancelled, "unused");
    for (pointer, path) in files {
        let digest = Digest::of(&fs_err::read(path).unwrap());
        context = context.with_source(*pointer, *path, digest);
    }
    CollectExecution.execute(parameters, &Inputs::new(), &context)
}

fn demonstrations(outputs: &Outputs) -> Demonstrations {
    Demonstrations::from_table(outputs.get_table("demos").unwrap()).unwrap()
}

/// What failed, and what to do next.
fn told(failure: Failure) -> (String, String) {
    let Failed { message, help, .. } = failure.into();
    (message, help.unwrap_or_default())
}

#[test]
fn what_is_recorded_is_what_the_simulator_and_the_policy_do() {
    let task = provenir_sim::Task::named("hopper").unwrap();
    for time_feature in [false, true] {
        let expert = hopper(time_feature);
        let outputs = collect(&expert, &parameters(None, Some(3))).unwrap();
        let demos = demonstrations(&outputs);
        assert_eq!(demos.about.environment, "hopper");
        assert_eq!(
            (demos.about.time_feature, demos.about.expert.as_str()),
            (time_feature, "linear")
        );
        let (seeds, mut row) = (Stream::new(5, "collect"), 0);
        let mut returns = Vec::new();
        for episode in 0..3 {
            let mut environment = provenir_sim::Environment::new(task, time_feature);
            environment.reset(seeds.at(episode));
            returns.push(0.0);
            for step in 0.. {
                let mut action = [0.0; 3];
                expert.actor().act(environment.observation(), &mut action);
                assert_eq!(
                    (demos.sample[row], u64::from(demos.episode[row]), demos.step[row]),
                    (row as u64, episode, step)
                );
                assert_eq!(demos.observation.row(row), environment.observation());
                assert_eq!(demos.action.row(row), action);
                if time_feature {
                    let left = 1.0 - f64::from(step) / 1000.0;
                    assert_eq!(demos.observation.row(row)[15..], [left as f32]);
                }
                let happened = environment.step(&action).unwrap();
                assert_eq!(demos.reward[row..=row], [happened.reward as f32]);
                assert_eq!(
                    (demos.terminated[row], demos.truncated[row]),
                    (happened.terminated, happened.truncated)
                );
                returns[episode as usize] += happened.reward;
                row += 1;
                if happened.is_last() {
                    break;
                }
            }
        }
        assert_eq!(row, demos.rows());
        assert_eq!(
            outputs
                .get_table("episodes")
                .unwrap()
                .column_f64("return")
                .unwrap(),
            returns
        );
    }
}

#[test]
fn fewer_samples_are_the_beginning_of_more_but_for_the_cut() {
    let many = demonstrations(&collect(&hopper(false), &parameters(Some(900), None)).unwrap());
    assert_eq!(many.rows(), 900);
    // The policy falls: there are many episodes, more than fit one rollout.
    assert!(many.episode[899] > 10);
    for count in [1, 2, 57, 400] {
        let outputs = collect(&hopper(false), &parameters(Some(count as u64), None)).unwrap();
        let few = demonstrations(&outputs);
        let mut beginning = many.select(&(0..count).collect::<Vec<_>>());
        beginning.truncated[count - 1] |= !beginning.terminated[count - 1];
        assert_eq!(few, beginning);
        let column = |name: &str| {
            let episodes = outputs.get_table("episodes").unwrap();
            episodes.column_u32(name).unwrap().to_vec()
        };
        let (recorded, lengths) = (column("recorded"), column("length"));
        assert_eq!(recorded.iter().sum::<u32>() as usize, count);
        // Rows tell of whole episodes: what was recorded of all but the last, and what the longer recording has of that.
        let last = lengths.len() - 1;
        assert_eq!(recorded[..last], lengths[..last]);
        let whole = many
            .episode
            .iter()
            .filter(|episode| **episode as usize == last)
            .count();
        assert_eq!(lengths[last] as usize, whole);
    }
    let other = demonstrations(
        &collect(
            &hopper(false),
            &CollectParameters {
                seed: 6,
                ..parameters(Some(900), None)
            },
        )
        .unwrap(),
    );
    assert_ne!(other.observation, many.observation);
}

#[test]
fn a_policy_file_is_as_good_as_a_wired_policy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    let expert = hopper(true);
    let set = PolicySet::single(expert.clone());
    let from_port = collect(&expert, &parameters(Some(50), None)).unwrap();
    for (name, refusal) in [
        (
            "expert.parquet",
            "expert.parquet` cannot be read as a Parquet table",
        ),
        (
            "expert.safetensors",
            "expert.safetensors` is not a policy as safetensors: ",
        ),
    ] {
        let path = folder.join(name);
        if name.ends_with("parquet") {
            provenir_table::write(&path, &set.to_table().unwrap()).unwrap();
        } else {
            fs_err::write(&path, set.to_safetensors()).unwrap();
        }
        let named = CollectParameters {
            expert: Some(SourceFile(path.clone())),
            ..parameters(Some(50), None)
        };
        let from_file = collect_files(&named, &[("/expert", &path)]).unwrap();
        for port in ["demos", "episodes"] {
            assert_eq!(from_file.get_table(port), from_port.get_table(port));
        }
        // What it holds is in the key, its name is not: the same bytes are the same policy.
        let other = path.with_extension("zip");
        fs_err::copy(&path, &other).unwrap();
        let renamed = CollectParameters {
            expert: Some(SourceFile(other.clone())),
            ..named.clone()
        };
        let from_other = collect_files(&renamed, &[("/expert", &other)]).unwrap();
        assert_eq!(from_other.get_table("demos"), from_port.get_table("demos"));
        let for_archives = CollectParameters {
            activation: Some(provenir_kinds::Activation::Tanh),
            ..renamed
        };
        let (message, _) = told(collect_files(&for_archives, &[("/expert", &other)]).unwrap_err());
        assert!(
            message.contains("is no archive of Stable-Baselines3"),
            "{message}"
        );
        fs_err::write(&path, b"nothing of the kind").unwrap();
        let (message, _) = told(collect_files(&named, &[("/expert", &path)]).unwrap_err());
        assert!(message.contains(refusal), "{message}");
    }
}

#[test]
fn a_time_feature_that_contradicts_the_policy_is_refused_and_one_that_agrees_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    for has_it in [false, true] {
        let set = PolicySet::single(hopper(has_it));
        let (table, tensors) = (folder.join("expert.parquet"), folder.join("expert.safetensors"));
        provenir_table::write(&table, &set.to_table().unwrap()).unwrap();
        fs_err::write(&tensors, set.to_safetensors()).unwrap();
        for path in [&table, &tensors] {
            let given = |time_feature| {
                let named = CollectParameters {
                    expert: Some(SourceFile(path.clone())),
                    time_feature,
                    ..parameters(Some(50), None)
                };
                collect_files(&named, &[("/expert", path)])
            };
            let absent = given(None).unwrap();
            assert_eq!(demonstrations(&absent).about.time_feature, has_it);
            assert_eq!(
                demonstrations(&given(Some(has_it)).unwrap()),
                demonstrations(&absent)
            );
            let (found, asked) = if has_it {
                ("with", "without")
            } else {
                ("without", "with")
            };
            let (message, help) = told(given(Some(!has_it)).unwrap_err());
            assert_eq!(
                message,
                format!(
                    "the expert `{path}` observes {found} the time feature, by its own metadata; `time_feature = {}` says \
                     {asked} it",
                    !has_it
                )
            );
            assert!(help.contains("leave `time_feature` out"), "{help}");
        }
        let wired = CollectParameters {
            time_feature: Some(!has_it),
            ..parameters(Some(50), None)
        };
        let (message, _) = told(collect(&hopper(has_it), &wired).unwrap_err());
        assert!(message.starts_with("the expert observes with"), "{message}");
    }
}

#[test]
fn an_expert_of_an_environment_that_there_is_not_is_told_so() {
    let about = About {
        environment: "humanoid".to_owned(),
        ..About::default()
    };
    let (message, help) = told(collect(&policy(15, 3, about), &parameters(Some(10), None)).unwrap_err());
    assert_eq!(
        message,
        "the expert does not fit: it was made for the environment `humanoid`, not for `hopper`"
    );
    assert_eq!(
        help,
        "there is no environment `humanoid`: its metadata must name one of hopper, walker2d, half-cheetah, ant, and \
         `env` the same"
    );
}

#[test]
fn a_file_that_is_no_expert_is_named_with_what_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| Utf8PathBuf::try_from(folder.path().join(name)).unwrap();
    let (table, text, archive) = (path("table.parquet"), path("text.parquet"), path("agent.zip"));
    let other = provenir_table::TableBuilder::new()
        .f64("value", vec![1.0])
        .build()
        .unwrap();
    provenir_table::write(&table, &other).unwrap();
    fs_err::write(&text, "not Parquet").unwrap();
    fs_err::write(&archive, "PK\u{3}\u{4} and then nothing").unwrap();
    for (file, wanted) in [
        (&table, "`checkpoint` (u32)"),
        (&text, "`checkpoint` (u32)"),
        (&archive, "`model.save`"),
    ] {
        let named = CollectParameters {
            expert: Some(SourceFile(file.clone())),
            ..parameters(Some(50), None)
        };
        let (message, help) = told(collect_files(&named, &[("/expert", file)]).unwrap_err());
        assert!(message.contains(file.as_str()), "{message}");
        assert!(help.contains(wanted), "{help}");
    }
}

#[test]
fn an_expert_that_does_not_fit_is_refused_with_both_numbers() {
    let about = |environment: &str| About {
        environment: environment.to_owned(),
        ..About::default()
    };
    let refusal = |expert: Policy| told(collect(&expert, &parameters(Some(10), None)).unwrap_err());
    assert_eq!(
        refusal(policy(15, 3, about("ant"))).0,
        "the expert does not fit: it was made for the environment `ant`, not for `hopper`"
    );
    let (message, help) = refusal(policy(22, 3, about("hopper")));
    assert_eq!(
        message,
        "the expert does not fit: it sees 22 numbers without the time feature; an observation of `hopper` \
         alone has 15"
    );
    assert!(help.starts_with("was it trained in `hopper`?"), "{help}");
    assert_eq!(
        refusal(policy(15, 6, about("hopper"))).0,
        "the expert does not fit: it gives actions of 6 components; `hopper` takes 3"
    );
}

#[test]
fn a_cancelled_cell_stops() {
    let cancelled = AtomicBool::new(true);
    let context = Context::new(&Silent, &cancelled, "unused");
    let table = PolicySet::single(hopper(false)).to_table().unwrap();
    let inputs = Inputs::new().with_table("expert", table);
    let failure = CollectExecution
        .execute(&parameters(Some(10_000_000), None), &inputs, &context)
        .unwrap_err();
    assert_eq!(failure.blame(), Blame::Cancelled);
}

/// Agent and statistics of the RL Zoo for a robot; `None`, said loudly, where they do not lie beside the repository.
fn zoo(robot: &str) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/zoo-ppo")
        .join(robot);
    if folder.exists() {
        return Some((folder.join("ppo.zip"), folder.join("vecnormalize.pkl")));
    }
    announce(&folder);
    None
}

#[expect(clippy::print_stderr, reason = "a test that checks nothing says so")]
fn announce(folder: &Utf8Path) {
    eprintln!("SKIPPED: there is no agent of the RL Zoo at {folder}");
}

fn zoo_parameters(archive: &Utf8Path, statistics: &Utf8Path, episodes: u64) -> CollectParameters {
    CollectParameters {
        expert: Some(SourceFile(archive.to_owned())),
        normalization: Some(SourceFile(statistics.to_owned())),
        time_feature: Some(true),
        ..parameters(None, Some(episodes))
    }
}

/// A file that Stable-Baselines3 wrote for an agent of Hopper's widths.
fn recorded(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stable-baselines/tests/fixtures")
        .join(name)
}

/// Collects with a recorded agent.
fn collect_recorded(
    archive: &str,
    statistics: Option<&str>,
    time_feature: bool,
) -> Result<Outputs, (String, String)> {
    let (archive, statistics) = (recorded(archive), statistics.map(recorded));
    let parameters = CollectParameters {
        expert: Some(SourceFile(archive.clone())),
        normalization: statistics.clone().map(SourceFile),
        time_feature: Some(time_feature),
        ..parameters(Some(40), None)
    };
    let mut files = vec![("/expert", archive.as_path())];
    files.extend(statistics.as_deref().map(|path| ("/normalization", path)));
    collect_files(&parameters, &files).map_err(told)
}

#[test]
fn an_archive_is_rolled_out_with_and_without_the_time_feature() {
    for (archive, statistics, time_feature) in [
        ("hopper.zip", None, false),
        ("hopper-time.zip", Some("hopper-time.pkl"), true),
    ] {
        let demos = demonstrations(&collect_recorded(archive, statistics, time_feature).unwrap());
        assert_eq!(demos.rows(), 40);
        assert_eq!(
            (demos.about.expert.as_str(), demos.about.time_feature),
            ("sac", time_feature)
        );
    }
}

#[test]
fn an_archive_off_by_one_is_told_of_the_time_feature() {
    let (message, help) = collect_recorded("hopper-time.zip", Some("hopper-time.pkl"), false).unwrap_err();
    assert!(
        message.ends_with(
            "hopper-time.zip` does not fit: it sees 16 numbers without the time feature; an observation of \
             `hopper` alone has 15"
        ),
        "{message}"
    );
    assert!(help.contains("set `time_feature = true`"), "{help}");
    let (message, help) = collect_recorded("hopper.zip", None, true).unwrap_err();
    assert!(
        message.ends_with(
            "it sees 15 numbers of which the last is the time feature; an observation of `hopper` with it has 16"
        ),
        "{message}"
    );
    assert!(help.contains("leave `time_feature` out"), "{help}");
}

#[test]
fn a_file_that_is_refused_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let harm = Utf8Path::from_path(folder.path()).unwrap().join("harm.pkl");
    fs_err::write(&harm, b"\x80\x04cos\nsystem\nX\x04\0\0\0true\x85R.").unwrap();
    let archive = recorded("hopper.zip");
    let parameters = CollectParameters {
        expert: Some(SourceFile(archive.clone())),
        normalization: Some(SourceFile(harm.clone())),
        ..parameters(Some(1), None)
    };
    let files = [("/expert", archive.as_path()), ("/normalization", &harm)];
    let (message, help) = told(collect_files(&parameters, &files).unwrap_err());
    assert_eq!(
        message,
        format!(
            "`{harm}` cannot be read: the `VecNormalize` file: this pickle asks for `os.system`, which is not on the list \
             of what a Stable-Baselines3 file may contain; it was not run"
        )
    );
    assert!(help.contains("somebody you trust"), "{help}");
}

/// What the agent of a robot reaches in PyBullet: mean, standard deviation and number of episodes.
struct InPyBullet {
    env: Environment,
    robot: &'static str,
    mean: f64,
    deviation: f64,
    episodes: f64,
}

/// Rolls an agent out, and holds the mean of its returns to PyBullet's: within four standard errors of the difference.
fn scores_as_in_pybullet(expected: &InPyBullet, episodes: u32) -> Option<Vec<f64>> {
    let (archive, statistics) = zoo(expected.robot)?;
    let files = [("/expert", archive.as_path()), ("/normalization", &statistics)];
    let parameters = CollectParameters {
        env: expected.env,
        ..zoo_parameters(&archive, &statistics, u64::from(episodes))
    };
    let outputs = collect_files(&parameters, &files).unwrap();
    let table = outputs.get_table("episodes").unwrap();
    let mut returns = table.column_f64("return").unwrap().to_vec();
    assert_eq!(returns.len(), episodes as usize);
    returns.sort_by(f64::total_cmp);
    let count = f64::from(episodes);
    let mean = returns.iter().sum::<f64>() / count;
    let variance = returns.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count + expected.deviation.powi(2) / expected.episodes).sqrt();
    report(expected.robot, &returns, mean, variance.sqrt());
    assert!(
        (mean - expected.mean).abs() < 4.0 * error,
        "{}: {mean}, not {} ± {error}",
        expected.robot,
        expected.mean
    );
    Some(returns)
}

/// Some of this agent's episodes end in a fall: 2442 ± 524 with a median of 2623.
#[test]
fn the_zoo_s_hopper_scores_as_in_pybullet() {
    let expected = InPyBullet {
        env: Environment::Hopper,
        robot: "Hopper",
        mean: 2442.0,
        deviation: 524.0,
        episodes: 87.0,
    };
    if let Some(returns) = scores_as_in_pybullet(&expected, 80) {
        let median = f64::midpoint(returns[39], returns[40]);
        assert!((median - 2623.0).abs() < 60.0, "median {median}");
    }
}

#[test]
fn the_zoo_s_other_robots_score_as_in_pybullet() {
    let expected = |env, robot, mean, deviation| InPyBullet {
        env,
        robot,
        mean,
        deviation,
        episodes: 80.0,
    };
    for expected in [
        expected(Environment::Walker2D, "Walker2D", 2111.0, 15.0),
        expected(Environment::HalfCheetah, "HalfCheetah", 2927.0, 58.0),
        expected(Environment::Ant, "Ant", 2873.0, 61.0),
    ] {
        scores_as_in_pybullet(&expected, 20);
    }
}

#[expect(clippy::print_stderr, reason = "shown with --nocapture")]
fn report(robot: &str, sorted: &[f64], mean: f64, deviation: f64) {
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    eprintln!(
        "{robot}, {} episodes: {mean:.1} ± {deviation:.1}, median {median:.1}",
        sorted.len()
    );
}

#[test]
fn every_environment_that_a_manifest_can_name_is_a_task() {
    let names = provenir_kinds::Environment::ALL.map(provenir_kinds::Environment::name);
    assert_eq!(names, provenir_sim::NAMES);
}

#[test]
fn cores_change_nothing() {
    let table = PolicySet::single(hopper(false)).to_table().unwrap();
    let digests = |parameters: &CollectParameters, cores| {
        let cancelled = AtomicBool::new(false);
        let context = Context::new(&Silent, &cancelled, "unused").with_cores(cores);
        let inputs = Inputs::new().with_table("expert", table.clone());
        let outputs = CollectExecution.execute(parameters, &inputs, &context).unwrap();
        ["demos", "episodes"].map(|port| outputs.get_table(port).unwrap().content())
    };
    for parameters in [parameters(Some(300), None), parameters(None, Some(9))] {
        let one = digests(&parameters, 1);
        for cores in [2, 3, 40] {
            assert_eq!(digests(&parameters, cores), one, "{cores}");
        }
    }
}
