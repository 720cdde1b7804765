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
    };
    policy(15 + usize::from(time_feature), 3, about)
}

fn parameters(samples: Option<u64>, episodes: Option<u64>) -> CollectParameters {
    CollectParameters {
        env: Environment::Hopper,
        expert: None,
        normalization: None,
        activation: None,
        time_feature: false,
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
        let lengths = outputs
            .get_table("episodes")
            .unwrap()
            .column_u32("length")
            .unwrap()
            .to_vec();
        assert_eq!(lengths.iter().sum::<u32>() as usize, count);
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
    let path = Utf8PathBuf::try_from(folder.path().join("expert.parquet")).unwrap();
    let expert = hopper(true);
    provenir_table::write(&path, &PolicySet::single(expert.clone()).to_table().unwrap()).unwrap();
    let named = CollectParameters {
        expert: Some(SourceFile(path.clone())),
        ..parameters(Some(50), None)
    };
    let from_file = collect_files(&named, &[("/expert", &path)]).unwrap();
    let from_port = collect(&expert, &parameters(Some(50), None)).unwrap();
    for port in ["demos", "episodes"] {
        assert_eq!(from_file.get_table(port), from_port.get_table(port));
    }
    fs_err::write(&path, b"PAR1 and then nothing").unwrap();
    let (message, _) = told(collect_files(&named, &[("/expert", &path)]).unwrap_err());
    assert!(
        message.contains("expert.parquet` cannot be read as a Parquet table"),
        "{message}"
    );
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
        "the expert does not fit: the policy was made for the environment `ant`, not for `hopper`"
    );
    let (message, help) = refusal(policy(22, 3, about("hopper")));
    assert_eq!(
        message,
        "the expert does not fit: the policy sees 22 numbers without the time feature; an observation of `hopper` \
         alone has 15"
    );
    assert_eq!(help, "was the expert trained in `hopper`?");
    assert_eq!(
        refusal(policy(15, 6, about("hopper"))).0,
        "the expert does not fit: the policy gives actions of 6 components; `hopper` takes 3"
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

/// Agent and statistics of the RL Zoo's Hopper; `None`, said loudly, where they do not lie beside the repository.
fn zoo() -> Option<(Utf8PathBuf, Utf8PathBuf)> {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/zoo-ppo/Hopper");
    if folder.exists() {
        return Some((folder.join("ppo.zip"), folder.join("vecnormalize.pkl")));
    }
    announce(&folder);
    None
}

#[expect(clippy::print_stderr, reason = "a test that checks nothing says so")]
fn announce(folder: &Utf8Path) {
    eprintln!("SKIPPED: the RL Zoo's Hopper agent is not at {folder}");
}

fn zoo_parameters(archive: &Utf8Path, statistics: &Utf8Path, episodes: u64) -> CollectParameters {
    CollectParameters {
        expert: Some(SourceFile(archive.to_owned())),
        normalization: Some(SourceFile(statistics.to_owned())),
        time_feature: true,
        ..parameters(None, Some(episodes))
    }
}

#[test]
fn an_archive_off_by_one_is_told_of_the_time_feature() {
    let Some((archive, statistics)) = zoo() else {
        return;
    };
    let plain = CollectParameters {
        time_feature: false,
        ..zoo_parameters(&archive, &statistics, 1)
    };
    let files = [("/expert", archive.as_path()), ("/normalization", &statistics)];
    let (message, help) = told(collect_files(&plain, &files).unwrap_err());
    assert_eq!(
        message,
        "the expert does not fit: the policy sees 16 numbers without the time feature; an observation of `hopper` \
         alone has 15"
    );
    assert!(help.ends_with("set `time_feature = true`"), "{help}");
}

/// In PyBullet this agent reaches 2442 ± 524 over 87 episodes, with a median of 2623 and some early falls.
#[test]
fn the_zoos_hopper_scores_as_in_pybullet() {
    let Some((archive, statistics)) = zoo() else {
        return;
    };
    let files = [("/expert", archive.as_path()), ("/normalization", &statistics)];
    let outputs = collect_files(&zoo_parameters(&archive, &statistics, 80), &files).unwrap();
    let mut returns = outputs
        .get_table("episodes")
        .unwrap()
        .column_f64("return")
        .unwrap()
        .to_vec();
    assert_eq!(returns.len(), 80);
    returns.sort_by(f64::total_cmp);
    let mean = returns.iter().sum::<f64>() / 80.0;
    let deviation = (returns.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 79.0).sqrt();
    let median = f64::midpoint(returns[39], returns[40]);
    report(mean, deviation, median);
    // Four standard errors of the difference of the two means: 4 · 524 · √(1/80 + 1/87).
    assert!((mean - 2442.0).abs() < 325.0, "mean {mean}");
    assert!((median - 2623.0).abs() < 60.0, "median {median}");
}

#[expect(clippy::print_stderr, reason = "shown with --nocapture")]
fn report(mean: f64, deviation: f64, median: f64) {
    eprintln!("return of 80 episodes: {mean:.1} ± {deviation:.1}, median {median:.1}");
}

#[test]
fn every_environment_that_a_manifest_can_name_is_a_task() {
    let names = provenir_kinds::Environment::ALL.map(provenir_kinds::Environment::name);
    assert_eq!(names, provenir_sim::NAMES);
}
