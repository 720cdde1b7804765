//! Agents made here, whose actions are known in closed form.

use provenir_policy::Activation;
use provenir_stable_baselines::{Error, MetadataError, NetworkError, WeightsError};
use zip::CompressionMethod;

use crate::support::{
    View, act, archive, assert_acts, metadata, pth, pth_of, read_agent, state_dict, statistics, storages,
    views, zip,
};

const OBSERVATIONS: [[f32; 3]; 4] = [
    [0.0, 0.0, 0.0],
    [0.5, -0.25, 1.0],
    [-1.5, 2.0, 0.125],
    [3.0, -4.0, 5.0],
];
const RELU: &str = r#""activation_fn": "<class 'torch.nn.modules.activation.ReLU'>""#;

fn relu(value: f64) -> f64 {
    value.max(0.0)
}

/// Reads an agent without statistics and compares its actions with what the network does.
#[track_caller]
fn check(bytes: &[u8], activation: fn(f64) -> f64) {
    let policy = read_agent(bytes, None, None).unwrap();
    for observation in OBSERVATIONS {
        let expected = act(observation.map(f64::from), activation);
        assert_acts(&policy, &observation, &expected, 1e-6);
    }
}

fn refusal(bytes: &[u8]) -> Error {
    read_agent(bytes, None, None).unwrap_err()
}

fn with_network(views: &[View], storages: &[(&str, &[f32])]) -> Vec<u8> {
    archive(&metadata(RELU), &pth(views, storages))
}

#[test]
fn activation_is_read_from_what_the_metadata_prints() {
    let network = pth(&views(), &storages());
    check(&archive(&metadata(RELU), &network), relu);
    check(&archive(&metadata(""), &network), f64::tanh);
    let tanh = RELU.replace("ReLU", "Tanh");
    check(&archive(&metadata(&tanh), &network), f64::tanh);
}

#[test]
fn an_activation_that_is_not_told_must_be_given() {
    let network = pth(&views(), &storages());
    let untold = archive(&metadata(RELU).replace("policy_kwargs", "other"), &network);
    let error = refusal(&untold);
    assert!(matches!(error, Error::UnknownActivation));
    assert!(error.help().unwrap().contains("`activation`"));
    let policy = read_agent(&untold, None, Some(Activation::Relu)).unwrap();
    assert_acts(
        &policy,
        &OBSERVATIONS[1],
        &act(OBSERVATIONS[1].map(f64::from), relu),
        1e-6,
    );

    let told = archive(&metadata(RELU), &network);
    assert!(read_agent(&told, None, Some(Activation::Relu)).is_ok());
    let error = read_agent(&told, None, Some(Activation::Tanh)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the hidden layers' activation is relu by the agent's archive, and was given as tanh"
    );
    let elu = archive(&metadata(&RELU.replace("ReLU", "ELU")), &network);
    let error = read_agent(&elu, None, Some(Activation::Tanh)).unwrap_err();
    assert!(matches!(error, Error::UnsupportedActivation(name) if name == "torch.nn.modules.activation.ELU"));
}

#[test]
fn statistics_standardise_observations_in_double_precision() {
    let network = archive(&metadata(RELU), &pth(&views(), &storages()));
    let (mean, variance) = ([0.25, -1.0, 1e6], [4.0, 0.0, 1e-4]);
    let policy = read_agent(&network, Some(&statistics(&mean, &variance)), None).unwrap();
    // The second has no variance: what differs from its mean is clipped; so is the third, from single precision's grain.
    for observation in [
        [0.25, -1.0, 1e6_f32],
        [1.5, -1.0, 1e6],
        [-3.0, -0.5, 1e6 + 0.0625],
    ] {
        let standardised = std::array::from_fn(|index| {
            let offset = f64::from(observation[index]) - mean[index];
            f64::from((offset / (variance[index] + 1e-8_f64).sqrt()).clamp(-10.0, 10.0) as f32)
        });
        assert_acts(&policy, &observation, &act(standardised, relu), 1e-5);
    }
    let error = read_agent(&network, Some(&statistics(&[0.0; 4], &[1.0; 4])), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the `VecNormalize` file describes 4 observations, the network reads 3"
    );
}

/// All four tensors in one storage, one of them transposed and one of them on a GPU, as parameters.
#[test]
fn tensors_may_be_views_of_a_shared_storage() {
    let transposed: Vec<f32> = (0..3)
        .flat_map(|column| (0..4).map(move |row| crate::support::HIDDEN[row * 3 + column]))
        .collect();
    let mut storage = vec![9.0; 2];
    let mut shared = views();
    let contents: [&[f32]; 4] = [
        &transposed,
        &crate::support::HIDDEN_BIAS,
        &crate::support::ACTION,
        &crate::support::ACTION_BIAS,
    ];
    for (view, content) in shared.iter_mut().zip(contents) {
        view.storage = "0";
        view.offset = i32::try_from(storage.len()).unwrap();
        view.parameter = true;
        storage.extend(content);
        storage.push(-9.0);
    }
    shared[0].strides = vec![1, 4];
    shared[1].location = "cuda:0";
    for view in &mut shared {
        view.length = i32::try_from(storage.len()).unwrap();
    }
    check(&with_network(&shared, &[("0", &storage)]), relu);
}

#[test]
fn archives_may_be_deflated() {
    let network = pth(&views(), &storages());
    let metadata = metadata(RELU);
    let entries: [(&str, &[u8]); 2] = [("data", metadata.as_bytes()), ("policy.pth", &network)];
    check(&zip(&entries, CompressionMethod::Deflated), relu);
}

#[test]
fn actions_are_kept_between_the_bounds_of_the_action_space() {
    let network = pth(&views(), &storages());
    let narrow = metadata(RELU)
        .replace("[-1. -1.]", "[ 0.25 -0.05]")
        .replace("[1. 1.]", "[0.5 0. ]");
    let policy = read_agent(&archive(&narrow, &network), None, None).unwrap();
    for observation in OBSERVATIONS {
        let [first, second] = act(observation.map(f64::from), relu);
        assert_acts(
            &policy,
            &observation,
            &[first.clamp(0.25, 0.5), second.clamp(-0.05, 0.0)],
            1e-6,
        );
    }
    for (low, high) in [
        ("[2. 2.]", "[1. 1.]"),
        ("[-1. -1.]", "[inf inf]"),
        ("[nan nan]", "[1. 1.]"),
    ] {
        let bounds = metadata(RELU).replace("[-1. -1.]", low).replace("[1. 1.]", high);
        assert!(matches!(refusal(&archive(&bounds, &network)), Error::Policy(_)));
    }
}

#[test]
fn tensors_of_exploration_and_value_do_not_matter() {
    let mut all = views();
    all.push(View::dense("log_std", &[4, 2]));
    all.push(View::dense("mlp_extractor.value_net.0.weight", &[4, 3]));
    all.push(View::dense("value_net.bias", &[1]));
    check(&with_network(&all, &storages()), relu);
}

#[test]
fn other_algorithms_are_named() {
    for (tensor, algorithm) in [
        ("q_net.q_net.0.weight", "DQN"),
        ("quantile_net.quantile_net.0.weight", "QR-DQN"),
        ("lstm_actor.weight_ih_l0", "RecurrentPPO"),
        ("actor.latent_pi.0.ra_mean", "CrossQ"),
        ("action_net.0.weight", "ARS"),
    ] {
        let error = refusal(&with_network(
            &[View::dense(tensor, &[1, 1])],
            &[(tensor, &[0.0])],
        ));
        assert_eq!(
            error.to_string(),
            format!(
                "`policy.pth` in the agent's archive: it holds an agent of {algorithm}; agents of PPO, A2C, SAC, TQC, TD3 \
                 and DDPG are read"
            )
        );
    }
}

#[test]
fn networks_that_read_images_or_dicts_are_named() {
    for (tensor, class) in [
        ("features_extractor.cnn.0.weight", "CnnPolicy"),
        ("actor.features_extractor.cnn.0.weight", "CnnPolicy"),
        (
            "pi_features_extractor.extractors.image.cnn.0.weight",
            "MultiInputPolicy",
        ),
    ] {
        let mut all = views();
        all.push(View::dense(tensor, &[1, 1]));
        let error = refusal(&with_network(&all, &storages()));
        assert!(
            matches!(error, Error::Network(NetworkError::Extractor(found)) if found == class),
            "{error}"
        );
    }
}

/// The same numbers under the names of an off-policy actor.
fn renamed(names: [(&'static str, &'static str); 2]) -> (Vec<View>, Vec<(&'static str, &'static [f32])>) {
    let (mut views, mut storages) = (views(), storages());
    for (index, (weight, bias)) in names.into_iter().enumerate() {
        for (offset, name) in [weight, bias].into_iter().enumerate() {
            let place = 2 * index + offset;
            (views[place].name, views[place].storage, storages[place].0) = (name, name, name);
        }
    }
    (views, storages)
}

const SAC: [(&str, &str); 2] = [
    ("actor.latent_pi.0.weight", "actor.latent_pi.0.bias"),
    ("actor.mu.weight", "actor.mu.bias"),
];
const SAC_GSDE: [(&str, &str); 2] = [SAC[0], ("actor.mu.0.weight", "actor.mu.0.bias")];
const TD3: [(&str, &str); 2] = [
    ("actor.mu.0.weight", "actor.mu.0.bias"),
    ("actor.mu.2.weight", "actor.mu.2.bias"),
];

/// What the network does before its output is squashed, in double precision.
fn mean(observation: [f32; 3]) -> [f64; 2] {
    crate::support::mean(observation.map(f64::from), relu)
}

#[test]
fn off_policy_actors_are_squashed_into_the_action_space_with_relu_unless_told() {
    for (names, module, aside) in [
        (SAC, "stable_baselines3.sac.policies", "actor.log_std.weight"),
        (SAC, "sb3_contrib.tqc.policies", "critic.qf0.0.weight"),
        (TD3, "stable_baselines3.td3.policies", "actor_target.mu.0.weight"),
    ] {
        let (mut views, storages) = renamed(names);
        views.push(View::dense(aside, &[4, 3]));
        let metadata = metadata("")
            .replace("stable_baselines3.common.policies", module)
            .replace("[-1. -1.]", "[-2.  0.]")
            .replace("[1. 1.]", "[1.  0.5]");
        let policy = read_agent(&archive(&metadata, &pth(&views, &storages)), None, None).unwrap();
        for observation in OBSERVATIONS {
            let [first, second] = mean(observation).map(|value| f64::midpoint(value.tanh(), 1.0));
            assert_acts(&policy, &observation, &[3.0 * first - 2.0, 0.5 * second], 1e-6);
        }
    }
}

#[test]
fn gsde_clips_the_mean_before_it_is_squashed() {
    let (mut views, storages) = renamed(SAC_GSDE);
    views.push(View::dense("actor.log_std", &[4, 2]));
    let mut clipped = 0;
    for (arguments, bound) in [
        ("", 2.0),
        (r#""clip_mean": 0.25"#, 0.25),
        (r#""clip_mean": 3"#, 3.0),
    ] {
        let metadata = metadata(arguments).replace(
            "stable_baselines3.common.policies",
            "stable_baselines3.sac.policies",
        );
        let policy = read_agent(&archive(&metadata, &pth(&views, &storages)), None, None).unwrap();
        for observation in OBSERVATIONS {
            let means = mean(observation);
            clipped += means.iter().filter(|mean| mean.abs() > bound).count();
            let expected = means.map(|mean| mean.clamp(-bound, bound).tanh());
            assert_acts(&policy, &observation, &expected, 1e-6);
        }
    }
    assert!(clipped > 4);
    for bound in ["0", "-1", "1e400", "\"2\"", "1e-60"] {
        let metadata = metadata(&format!(r#""clip_mean": {bound}"#)).replace(
            "stable_baselines3.common.policies",
            "stable_baselines3.sac.policies",
        );
        let error = refusal(&archive(&metadata, &pth(&views, &storages)));
        assert!(
            matches!(error, Error::Policy(_) | Error::Metadata(MetadataError::Json(_))),
            "{error}"
        );
    }
}

#[test]
fn off_policy_actors_without_hidden_layers_are_told_apart() {
    for (deviation, bound) in [(Some("actor.log_std"), 2.0), (None, f64::INFINITY)] {
        let mut views = vec![
            View::dense("actor.mu.0.weight", &[2, 3]),
            View::dense("actor.mu.0.bias", &[2]),
        ];
        views.extend(deviation.map(|name| View::dense(name, &[3, 2])));
        let weights = [1.0, 2.0, -1.0, 0.5, 0.0, 0.25];
        let storages: [(&str, &[f32]); 2] =
            [("actor.mu.0.weight", &weights), ("actor.mu.0.bias", &[0.0, 1.0])];
        let module = match deviation {
            Some(_) => "stable_baselines3.sac.policies",
            None => "stable_baselines3.td3.policies",
        };
        let metadata = metadata("").replace("stable_baselines3.common.policies", module);
        let policy = read_agent(&archive(&metadata, &pth(&views, &storages)), None, None).unwrap();
        // 1 + 4 − 0.5 = 4.5, and 0.5 + 0.125 + 1 = 1.625
        let expected = [4.5, 1.625].map(|mean: f64| mean.clamp(-bound, bound).tanh());
        assert_acts(&policy, &[1.0, 2.0, 0.5], &expected, 1e-6);
    }
}

#[test]
fn a_class_that_contradicts_the_tensors_is_refused() {
    let (views, storages) = renamed(TD3);
    let error = refusal(&archive(&metadata(""), &pth(&views, &storages)));
    assert_eq!(
        error.to_string(),
        "`data` in the agent's archive: its policy class is of `stable_baselines3.common.policies`, but `policy.pth` holds \
         the network of TD3 or DDPG"
    );
}

#[test]
fn algorithms_are_told_apart_by_their_settings() {
    let method = |names: Option<_>, module: &str, settings: &str| {
        let (views, storages) = names.map_or_else(|| (views(), storages()), renamed);
        let metadata = metadata("")
            .replace("stable_baselines3.common.policies", module)
            .replace(r#""gamma": 0.99"#, settings);
        let policy = read_agent(&archive(&metadata, &pth(&views, &storages)), None, None).unwrap();
        policy.about().method.clone()
    };
    let on = |settings| method(None, "stable_baselines3.common.policies", settings);
    assert_eq!(
        on(r#""clip_range": {":type:": "f"}, "normalize_advantage": true"#),
        "ppo"
    );
    assert_eq!(on(r#""cg_max_steps": 15, "normalize_advantage": true"#), "trpo");
    assert_eq!(on(r#""normalize_advantage": false"#), "a2c");
    assert_eq!(on(r#""gamma": 0.5"#), "actor-critic");
    let sac = |settings| method(Some(SAC), "stable_baselines3.sac.policies", settings);
    assert_eq!(sac(r#""tau": 0.02"#), "sac");
    assert_eq!(sac(r#""top_quantiles_to_drop_per_net": 2"#), "tqc");
    let td3 = |settings| method(Some(TD3), "stable_baselines3.td3.policies", settings);
    assert_eq!(td3(r#""policy_delay": 2, "target_noise_clip": 0.5"#), "td3");
    assert_eq!(td3(r#""policy_delay": 1, "target_noise_clip": 0.5"#), "td3");
    assert_eq!(td3(r#""policy_delay": 1, "target_noise_clip": 0.0"#), "ddpg");
}

#[test]
fn what_an_archive_tells_of_the_training_is_noted() {
    let metadata = metadata("").replace(
        r#""gamma": 0.99"#,
        r#""num_timesteps": 2000000, "seed": 7, "use_sde": true"#,
    );
    let policy = read_agent(&archive(&metadata, &pth(&views(), &storages())), None, None).unwrap();
    let notes: Vec<(&str, &str)> = policy
        .about()
        .notes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        notes,
        [
            ("exploration", "gSDE"),
            ("seed", "7"),
            ("source", "Stable-Baselines3 2.9.2"),
            ("training_steps", "2000000"),
        ]
    );
}

#[test]
fn a_tensor_of_unknown_part_is_refused_rather_than_left_out() {
    for name in [
        "mlp_extractor.policy_net.4.weight",
        "mlp_extractor.policy_net.1.weight",
        "mlp_extractor.policy_net.0.scale",
        "critic.qf0.0.weight",
    ] {
        let mut all = views();
        all.push(View::dense(name, &[4, 4]));
        let error = refusal(&with_network(&all, &storages()));
        assert!(matches!(error, Error::Network(NetworkError::Unknown(found)) if found == name));
    }
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let change = |tensor: usize, change: fn(&mut View)| {
        let mut all = views();
        change(&mut all[tensor]);
        refusal(&with_network(&all, &storages()))
    };
    assert!(matches!(
        change(0, |view| view.class = "DoubleStorage"),
        Error::Network(NetworkError::Weights(WeightsError::Type { found, .. })) if found == "float64"
    ));
    // Beyond the end by one; by an offset; in another storage than described.
    for error in [
        change(1, |view| view.offset = 1),
        change(1, |view| view.strides = vec![2]),
        change(1, |view| view.strides = vec![i32::MAX]),
        change(1, |view| view.storage = "action_net.bias"),
        change(1, |view| view.length = 5),
    ] {
        assert!(
            matches!(
                error,
                Error::Network(NetworkError::Weights(WeightsError::Storage { .. }))
            ),
            "{error}"
        );
    }
    assert!(matches!(
        change(1, |view| view.shape = vec![3]),
        Error::Network(NetworkError::Shape { .. })
    ));
    assert!(matches!(
        change(2, |view| (view.shape, view.strides) = (vec![4, 2], vec![2, 1])),
        Error::Network(NetworkError::Shape { .. })
    ));
    assert!(matches!(
        change(1, |view| view.storage = "elsewhere"),
        Error::Network(NetworkError::Weights(WeightsError::Archive(_)))
    ));
    // Found by fuzzing: what a file names came into messages as it was.
    let error = change(1, |view| view.storage = "else\u{1b}where");
    assert!(error.to_string().ends_with("else\\u{1b}where`"), "{error}");
    assert!(matches!(
        refusal(&with_network(&views()[..3], &storages())),
        Error::Network(NetworkError::Weights(WeightsError::Missing(name))) if name == "action_net.bias"
    ));
}

#[test]
fn metadata_that_gives_the_weights_another_meaning_is_refused() {
    let network = pth(&views(), &storages());
    let refused = |metadata: &str| match refusal(&archive(metadata, &network)) {
        Error::Metadata(error) => error,
        error => panic!("{error}"),
    };
    let plain = metadata(RELU);
    assert!(matches!(
        refused(&metadata(r#""squash_output": "yes""#)),
        MetadataError::Json(_)
    ));
    assert!(matches!(
        refused(&metadata(
            r#""features_extractor_class": "<class '__main__.Mine'>""#
        )),
        MetadataError::Code { .. }
    ));
    assert!(matches!(
        refused(&plain.replace("stable_baselines3.common.policies", "__main__")),
        MetadataError::Code { .. }
    ));
    assert!(matches!(
        refused(&plain.replace("spaces.box.Box", "spaces.discrete.Discrete")),
        MetadataError::Space { .. }
    ));
    for bounds in ["[1.]", "[]", "1. 1.", "[1. ... 1.]", "[[1. 1.]]"] {
        assert!(matches!(
            refused(&plain.replace("[1. 1.]", bounds)),
            MetadataError::Bounds { actions: 2 }
        ));
    }
    assert!(matches!(refused("{"), MetadataError::Json(_)));
    assert!(matches!(refused("17"), MetadataError::Json(_)));
}

#[test]
fn a_big_endian_network_is_refused() {
    let pickle = state_dict(&views());
    let network = zip(
        &[("archive/data.pkl", &pickle), ("archive/byteorder", b"big")],
        CompressionMethod::Stored,
    );
    assert!(matches!(
        refusal(&archive(&metadata(RELU), &network)),
        Error::Network(NetworkError::Weights(WeightsError::BigEndian))
    ));
}

#[test]
fn a_network_in_the_format_before_pytorch_1_6_is_named() {
    // As `torch.save(…, _use_new_zipfile_serialization=False)` begins: the magic number, pickled.
    let legacy = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";
    let error = refusal(&archive(&metadata(RELU), legacy));
    assert_eq!(
        error.to_string(),
        "`policy.pth` in the agent's archive: it has the format that PyTorch used before version 1.6"
    );
    assert!(error.help().unwrap().contains("save it again"));
}

#[test]
fn a_state_dict_of_something_else_is_refused() {
    let module = crate::support::Pickle::new()
        .raw(b"}")
        .text("a")
        .int(1)
        .raw(b"s")
        .stop();
    let error = refusal(&archive(&metadata(RELU), &pth_of(&module, &[])));
    assert!(matches!(
        error,
        Error::Network(NetworkError::Weights(WeightsError::NoStateDict(_)))
    ));
}

#[test]
fn archives_of_stable_baselines_2_are_named() {
    let old = zip(
        &[("data", b"{}"), ("parameters", b""), ("parameter_list", b"[]")],
        CompressionMethod::Stored,
    );
    assert!(matches!(refusal(&old), Error::TensorFlow));
}
