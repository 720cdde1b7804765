use proptest::prelude::*;
use provenir_policy::{PolicySet, Squash};
use serde_json::{Value, json};

use crate::support::{policy, with_squash};

fn sample(standardised: bool) -> PolicySet {
    PolicySet::single(with_squash(
        &policy(1, &[3, 4, 2], standardised),
        Squash::ClippedTanh { bound: 2.0 },
        &[("training_steps", "1000000")],
    ))
}

/// Header and data of a file.
fn parts(file: &[u8]) -> (Value, Vec<u8>) {
    let length = u64::from_le_bytes(*file.first_chunk().unwrap());
    let (header, data) = file[8..].split_at(usize::try_from(length).unwrap());
    (serde_json::from_slice(header).unwrap(), data.to_vec())
}

/// A file of a header and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Why a file is refused after its header and data are spoiled.
fn refusal(spoil: impl FnOnce(&mut Value, &mut Vec<u8>)) -> String {
    let (mut header, mut data) = parts(&sample(true).to_safetensors());
    spoil(&mut header, &mut data);
    refused(&file(&header.to_string(), &data))
}

fn refused(file: &[u8]) -> String {
    PolicySet::from_safetensors(file).unwrap_err().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_set_comes_back_bit_for_bit(
        seed: u64,
        widths in prop::collection::vec(1_usize..30, 2..5),
        numbers in prop::collection::btree_set(any::<u32>(), 1..4),
        standardised: bool,
        bound in prop::option::of(1e-6_f32..1e6),
        note in ".{0,20}",
    ) {
        let squash = bound.map_or(Squash::Clip, |bound| Squash::ClippedTanh { bound });
        let checkpoints = numbers.iter().map(|number| {
            let policy = policy(seed ^ u64::from(*number), &widths, standardised);
            (*number, with_squash(&policy, squash, &[("note", &note)]))
        });
        let set = PolicySet::new(checkpoints.collect()).unwrap();
        let file = set.to_safetensors();
        let again = PolicySet::from_safetensors(&file).unwrap();
        prop_assert_eq!(again.to_table().unwrap().content(), set.to_table().unwrap().content());
        prop_assert_eq!(again.to_safetensors(), file);
    }

    #[test]
    fn altered_bytes_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = sample(true).to_safetensors();
        for (at, byte) in flips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(set) = PolicySet::from_safetensors(&file) {
            let policy = set.last();
            let mut actions = vec![0.0; policy.action_width()];
            policy.actor().act(&vec![0.5; policy.observation_width()], &mut actions);
        }
    }
}

/// The bytes of the format's specification, worked out by hand.
#[test]
fn the_layout_is_that_of_the_specification() {
    let set = sample(true);
    let (header, data) = parts(&set.to_safetensors());
    assert_eq!(
        header["__metadata__"],
        json!({
            "action_clip": "2", "action_map": "clipped-tanh", "activation": "tanh", "checkpoint": "0",
            "environment": "hopper", "method": "rbc", "observation_clip": "0.30000000000000004",
            "provenir_policy": "1", "time_feature": "true", "training_steps": "1000000",
        })
    );
    // Two tensors of three f64; then, by name, the bounds of two actions, and layers of 4 · 3 and 2 · 4 weights.
    let expected = [
        ("observation.mean", "F64", vec![3], 0, 24),
        ("observation.scale", "F64", vec![3], 24, 48),
        ("action.high", "F32", vec![2], 48, 56),
        ("action.low", "F32", vec![2], 56, 64),
        ("layers.0.bias", "F32", vec![4], 64, 80),
        ("layers.0.weight", "F32", vec![4, 3], 80, 128),
        ("layers.1.bias", "F32", vec![2], 128, 136),
        ("layers.1.weight", "F32", vec![2, 4], 136, 168),
    ];
    assert_eq!(header.as_object().unwrap().len(), 1 + expected.len());
    for (name, dtype, shape, begin, end) in expected {
        assert_eq!(
            header[name],
            json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]})
        );
    }
    assert_eq!(data.len(), 168);
    let weights = set.last().layers()[0].weights();
    assert_eq!(
        data[80..128],
        weights
            .iter()
            .flat_map(|weight| weight.to_le_bytes())
            .collect::<Vec<_>>()
    );
    assert!((set.to_safetensors().len() - data.len()).is_multiple_of(8));
}

#[test]
fn several_checkpoints_have_names_of_their_own() {
    let set = PolicySet::new(vec![
        (7, policy(1, &[3, 2], false)),
        (30, policy(2, &[3, 2], false)),
    ]);
    let (header, _) = parts(&set.unwrap().to_safetensors());
    assert!(header["checkpoints.7.layers.0.weight"].is_object());
    assert!(header["checkpoints.30.action.low"].is_object());
    assert!(header["__metadata__"]["checkpoint"].is_null());
}

/// As PyTorch writes them: statistics in single precision, tensors in another order, no word of checkpoint and layout.
#[test]
fn files_of_others_are_read() {
    let weight = [0.5_f32, -2.0];
    let numbers = [&weight[..], &[0.25], &[-1.0], &[1.0], &[1.0, 2.0], &[0.1, 4.0]].concat();
    let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let header = json!({
        "layers.0.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "layers.0.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        "action.low": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]},
        "action.high": {"dtype": "F32", "shape": [1], "data_offsets": [16, 20]},
        "observation.mean": {"dtype": "F32", "shape": [2], "data_offsets": [20, 28]},
        "observation.scale": {"dtype": "F32", "shape": [2], "data_offsets": [28, 36]},
        "__metadata__": {
            "environment": "hopper", "method": "mine", "time_feature": "false", "activation": "relu", "action_map": "clip",
        },
    });
    let set = PolicySet::from_safetensors(&file(&header.to_string(), &data)).unwrap();
    let policy = set.last();
    let statistics = policy.standardisation().unwrap();
    assert_eq!(
        (&statistics.scale[..], statistics.clip),
        (&[f64::from(0.1_f32), 4.0][..], None)
    );
    let mut action = [0.0];
    // (1.0, 6.0) → (0, 1) → 0.25 − 2 → −1.75, clipped.
    policy.actor().act(&[1.0, 6.0], &mut action);
    assert_eq!(action.map(f32::to_bits), [(-1.0_f32).to_bits()]);
}

#[test]
fn every_flaw_is_named() {
    let weight = "layers.1.weight";
    let told = |message: &str, part: &str| assert!(message.contains(part), "{message}");
    told(
        &refusal(|header, _| drop(header.as_object_mut().unwrap().remove("__metadata__"))),
        "`environment` in its `__metadata__` is missing",
    );
    told(
        &refusal(|header, _| header["__metadata__"]["provenir_policy"] = json!("2")),
        "its layout is version 2 of `provenir_policy`; this Provenir reads version 1",
    );
    told(
        &refusal(|header, _| header["__metadata__"]["activation"] = json!("gelu")),
        "`activation` in its `__metadata__` is `relu` or `tanh`, not `gelu`",
    );
    told(
        &refusal(|header, _| header["__metadata__"]["time_feature"] = json!(true)),
        "its header",
    );
    told(
        &refusal(|header, _| header["__metadata__"]["checkpoint"] = json!("-1")),
        "`checkpoint` is a number, not `-1`",
    );
    told(
        &refusal(|header, _| header[weight]["dtype"] = json!("BF16")),
        "the tensor `layers.1.weight` holds BF16; F32 and F64 are read",
    );
    told(
        &refusal(|header, _| header[weight]["more"] = json!(1)),
        "unknown field `more`",
    );
    for shape in [
        json!([4, 4]),
        json!([u64::MAX, u64::MAX]),
        json!([0]),
        json!(vec![1 << 16; 100]),
    ] {
        told(
            &refusal(|header, _| header[weight]["shape"] = shape),
            "does not fit the bytes 136 to 168",
        );
    }
    told(
        &refusal(|header, _| header[weight]["shape"] = json!([8])),
        "layer 1 has weights of shape [8]",
    );
    for offsets in [json!([136, 169]), json!([168, 136]), json!([0, u64::MAX])] {
        told(
            &refusal(|header, _| header[weight]["data_offsets"] = offsets),
            "does not fit the bytes",
        );
    }
    told(
        &refusal(|header, _| header[weight]["data_offsets"] = json!([128, 160])),
        "its tensors overlap or leave a gap",
    );
    told(
        &refusal(|_, data| data.extend([0; 3])),
        "3 bytes after its last tensor belong to none",
    );
    told(
        &refusal(|_, data| data.truncate(160)),
        "the file may be cut short",
    );
    told(
        &refusal(|_, data| data[80..84].copy_from_slice(&f32::NAN.to_le_bytes())),
        "weights that are not finite",
    );
    told(
        &refusal(|header, _| {
            let tensor = header[weight].take();
            header.as_object_mut().unwrap().remove(weight);
            header["checkpoints.x.layers.1.weight"] = tensor;
        }),
        "no use for the tensor `checkpoints.x.layers.1.weight`",
    );
    told(
        &refusal(|header, _| {
            let tensor = header[weight].take();
            header.as_object_mut().unwrap().remove(weight);
            header["layers.3.weight"] = tensor;
        }),
        "no use for the tensor `layers.1.bias`",
    );
}

#[test]
fn names_that_occur_twice_are_refused() {
    let tensor = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    for (header, name) in [
        (format!(r#"{{"a":{tensor},"a":{tensor}}}"#), "`a` occurs twice"),
        (
            r#"{"__metadata__":{},"__metadata__":{}}"#.to_owned(),
            "`__metadata__` occurs twice",
        ),
        (
            r#"{"__metadata__":{"method":"a","method":"b"}}"#.to_owned(),
            "`method` occurs twice",
        ),
        (
            r#"{"a":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,4]}}"#.to_owned(),
            "duplicate field `dtype`",
        ),
    ] {
        let message = refused(&file(&header, &[0; 4]));
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn lengths_and_depths_that_lie_are_refused() {
    let whole = sample(true).to_safetensors();
    for end in 0..whole.len() {
        refused(&whole[..end]);
    }
    for length in [u64::MAX, 1 << 40, (32 << 20) + 1] {
        let mut file = whole.clone();
        file[..8].copy_from_slice(&length.to_le_bytes());
        assert!(refused(&file).contains("at most 33554432 are read"));
    }
    let deep = format!("{{\"a\":{}", "[".repeat(1 << 20));
    assert!(refused(&file(&deep, &[])).contains("its header"));
    for header in ["", "{", "[]", "17", "null", "{}", "\u{1b}[31m"] {
        assert!(refused(&file(header, &[])).starts_with("not a policy as safetensors: "));
    }
}

/// Found by fuzzing: what a parser quotes of a header came into messages as it was.
#[test]
fn what_a_message_quotes_of_a_header_is_printable_and_short() {
    let long = "x".repeat(1 << 16);
    for name in ["data_offsets\u{7f}", "\\u001b[31m", &long] {
        let header = format!(r#"{{"a":{{"dtype":"F32","shape":[1],"{name}":[0,4]}}}}"#);
        let message = refused(&file(&header, &[0; 4]));
        assert!(message.contains("unknown field `"), "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(message.len() < 400, "{} characters", message.len());
    }
}
