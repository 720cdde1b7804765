//! Makes the files that Stable-Baselines3 would write, and the ones that it never would.

use std::io::{Cursor, Write};

use provenir_policy::{Activation, Policy};
use provenir_stable_baselines::{Agent, Error, read};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A pickle under construction, of protocol 4.
#[derive(Clone)]
pub(crate) struct Pickle(pub(crate) Vec<u8>);

impl Pickle {
    pub(crate) fn new() -> Self {
        Self(b"\x80\x04".to_vec())
    }

    /// Any instructions.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn global(self, module: &str, name: &str) -> Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.raw(b"X")
            .raw(&u32::try_from(text.len()).unwrap().to_le_bytes())
            .raw(text.as_bytes())
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.raw(b"B")
            .raw(&u32::try_from(bytes.len()).unwrap().to_le_bytes())
            .raw(bytes)
    }

    pub(crate) fn int(self, value: i32) -> Self {
        self.raw(b"J").raw(&value.to_le_bytes())
    }

    pub(crate) fn float(self, value: f64) -> Self {
        self.raw(b"G").raw(&value.to_be_bytes())
    }

    pub(crate) fn bool(self, value: bool) -> Self {
        self.raw(if value { b"\x88" } else { b"\x89" })
    }

    /// A tuple of integers.
    pub(crate) fn sizes(self, values: &[i32]) -> Self {
        values
            .iter()
            .fold(self.raw(b"("), |pickle, value| pickle.int(*value))
            .raw(b"t")
    }

    /// A one-dimensional numpy array of this type, as protocols up to 4 write it.
    pub(crate) fn array(self, code: &str, order: &str, length: usize, bytes: &[u8]) -> Self {
        self.global("numpy.core.multiarray", "_reconstruct")
            .raw(b"(")
            .global("numpy", "ndarray")
            .sizes(&[0])
            .bytes(b"b")
            .raw(b"tR(")
            .int(1)
            .sizes(&[i32::try_from(length).unwrap()])
            .global("numpy", "dtype")
            .raw(b"(")
            .text(code)
            .raw(b"\x89\x88tR(")
            .int(3)
            .text(order)
            .raw(b"NNN")
            .int(-1)
            .int(-1)
            .int(0)
            .raw(b"tb\x89")
            .bytes(bytes)
            .raw(b"tb")
    }

    pub(crate) fn vector(self, values: &[f64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array("f8", "<", values.len(), &bytes)
    }

    pub(crate) fn stop(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

/// A `VecNormalize` whose statistics are made by the closure.
pub(crate) fn vec_normalize(statistics: impl FnOnce(Pickle) -> Pickle) -> Vec<u8> {
    let pickle = Pickle::new()
        .global("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize")
        .raw(b")\x81}(")
        .text("norm_obs")
        .bool(true)
        .text("obs_rms");
    statistics(pickle)
        .text("epsilon")
        .float(1e-8)
        .text("clip_obs")
        .float(10.0)
        .raw(b"ub")
        .stop()
}

/// A `VecNormalize` of this mean and variance.
pub(crate) fn statistics(mean: &[f64], variance: &[f64]) -> Vec<u8> {
    vec_normalize(|pickle| {
        pickle
            .global("stable_baselines3.common.running_mean_std", "RunningMeanStd")
            .raw(b")\x81}(")
            .text("mean")
            .vector(mean)
            .text("var")
            .vector(variance)
            .raw(b"ub")
    })
}

/// A zip archive of these entries.
pub(crate) fn zip(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A tensor as a state dict describes it.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) storage: &'static str,
    /// PyTorch's class of storage.
    pub(crate) class: &'static str,
    pub(crate) length: i32,
    pub(crate) offset: i32,
    pub(crate) shape: Vec<i32>,
    pub(crate) strides: Vec<i32>,
    pub(crate) location: &'static str,
    pub(crate) parameter: bool,
}

impl View {
    /// A dense tensor with a storage of its own name.
    pub(crate) fn dense(name: &'static str, shape: &[i32]) -> Self {
        let mut strides = vec![1; shape.len()];
        for dimension in (1..shape.len()).rev() {
            strides[dimension - 1] = strides[dimension] * shape[dimension];
        }
        Self {
            name,
            storage: name,
            class: "FloatStorage",
            length: shape.iter().product(),
            offset: 0,
            shape: shape.to_vec(),
            strides,
            location: "cpu",
            parameter: false,
        }
    }
}

/// The pickle of a state dict.
pub(crate) fn state_dict(views: &[View]) -> Vec<u8> {
    let mut pickle = Pickle::new().global("collections", "OrderedDict").raw(b")R(");
    for view in views {
        pickle = pickle.text(view.name);
        if view.parameter {
            pickle = pickle.global("torch._utils", "_rebuild_parameter").raw(b"(");
        }
        pickle = pickle
            .global("torch._utils", "_rebuild_tensor_v2")
            .raw(b"((")
            .text("storage")
            .global("torch", view.class)
            .text(view.storage)
            .text(view.location)
            .int(view.length)
            .raw(b"tQ")
            .int(view.offset)
            .sizes(&view.shape)
            .sizes(&view.strides)
            .raw(b"\x89")
            .global("collections", "OrderedDict")
            .raw(b")RtR");
        if view.parameter {
            pickle = pickle
                .raw(b"\x88")
                .global("collections", "OrderedDict")
                .raw(b")RtR");
        }
    }
    pickle.raw(b"u").stop()
}

/// A `.pth` file of these tensors and storages.
pub(crate) fn pth(views: &[View], storages: &[(&str, &[f32])]) -> Vec<u8> {
    pth_of(&state_dict(views), storages)
}

/// A `.pth` file of this pickle and these storages.
pub(crate) fn pth_of(pickle: &[u8], storages: &[(&str, &[f32])]) -> Vec<u8> {
    let storages: Vec<(String, Vec<u8>)> = storages
        .iter()
        .map(|(name, values)| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            (format!("archive/data/{name}"), bytes)
        })
        .collect();
    let mut entries: Vec<(&str, &[u8])> = vec![
        ("archive/data.pkl", pickle),
        ("archive/byteorder", b"little"),
        ("archive/version", b"3\n"),
    ];
    entries.extend(
        storages
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    );
    zip(&entries, CompressionMethod::Stored)
}

/// Metadata with these entries of `policy_kwargs`.
pub(crate) fn metadata(arguments: &str) -> String {
    let space = |size: usize, bound: &str| {
        let row = |sign: &str| vec![format!("{sign}{bound}"); size].join(" ");
        format!(
            r#"{{":type:": "<class 'gymnasium.spaces.box.Box'>", ":serialized:": "gAS=", "low": "[{}]", "high": "[{}]"}}"#,
            row("-"),
            row("")
        )
    };
    format!(
        r#"{{"policy_class": {{":type:": "<class 'abc.ABCMeta'>", "__module__": "stable_baselines3.common.policies"}},
            "policy_kwargs": {{{arguments}}}, "action_space": {}, "observation_space": {}, "gamma": 0.99}}"#,
        space(2, "1."),
        space(3, "inf"),
    )
}

/// An agent's archive of this metadata and network.
pub(crate) fn archive(metadata: &str, network: &[u8]) -> Vec<u8> {
    zip(
        &[
            ("data", metadata.as_bytes()),
            ("policy.pth", network),
            ("_stable_baselines3_version", b"2.9.2"),
        ],
        CompressionMethod::Stored,
    )
}

/// Three observations, four hidden units, two actions.
pub(crate) const HIDDEN: [f32; 12] = [0.5, -1.0, 0.25, 1.0, 0.5, -0.5, -0.75, 0.125, 1.0, 0.0, 2.0, -1.0];
pub(crate) const HIDDEN_BIAS: [f32; 4] = [0.1, -0.2, 0.3, 0.0];
pub(crate) const ACTION: [f32; 8] = [0.5, 0.25, -0.5, 0.125, -0.25, 0.75, 0.5, -0.125];
pub(crate) const ACTION_BIAS: [f32; 2] = [0.05, -0.1];

/// The tensors of an agent without exploration or value.
pub(crate) fn views() -> Vec<View> {
    vec![
        View::dense("mlp_extractor.policy_net.0.weight", &[4, 3]),
        View::dense("mlp_extractor.policy_net.0.bias", &[4]),
        View::dense("action_net.weight", &[2, 4]),
        View::dense("action_net.bias", &[2]),
    ]
}

/// Their storages.
pub(crate) fn storages() -> Vec<(&'static str, &'static [f32])> {
    vec![
        ("mlp_extractor.policy_net.0.weight", &HIDDEN),
        ("mlp_extractor.policy_net.0.bias", &HIDDEN_BIAS),
        ("action_net.weight", &ACTION),
        ("action_net.bias", &ACTION_BIAS),
    ]
}

/// What that network does in double precision, clipped to between −1 and 1.
pub(crate) fn act(observation: [f64; 3], activation: fn(f64) -> f64) -> [f64; 2] {
    mean(observation, activation).map(|value| value.clamp(-1.0, 1.0))
}

/// What that network gives in double precision.
pub(crate) fn mean(observation: [f64; 3], activation: fn(f64) -> f64) -> [f64; 2] {
    let layer = |weights: &[f32], biases: &[f32], inputs: &[f64]| -> Vec<f64> {
        let rows = weights.chunks(inputs.len());
        rows.zip(biases)
            .map(|(row, bias)| {
                let products = row
                    .iter()
                    .zip(inputs)
                    .map(|(weight, input)| f64::from(*weight) * input);
                products.sum::<f64>() + f64::from(*bias)
            })
            .collect()
    };
    let hidden: Vec<f64> = layer(&HIDDEN, &HIDDEN_BIAS, &observation)
        .into_iter()
        .map(activation)
        .collect();
    let actions = layer(&ACTION, &ACTION_BIAS, &hidden);
    [actions[0], actions[1]]
}

/// Reads an agent that has no time feature.
pub(crate) fn read_agent(
    archive: &[u8],
    statistics: Option<&[u8]>,
    activation: Option<Activation>,
) -> Result<Policy, Error> {
    read(&Agent {
        archive,
        statistics,
        activation,
        environment: "test",
        time_feature: false,
    })
}

/// That a policy's action for an observation is this one.
#[track_caller]
pub(crate) fn assert_acts(policy: &Policy, observation: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(policy.action_width(), expected.len());
    let mut actions = vec![0.0; expected.len()];
    policy.actor().act(observation, &mut actions);
    for (action, expected) in actions.iter().zip(expected) {
        assert!(
            (f64::from(*action) - expected).abs() <= tolerance,
            "{actions:?} rather than {expected:?}"
        );
    }
}
