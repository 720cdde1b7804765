//! What short trainings gave when they were recorded. A difference means that results changed: raise the revision of
//! `expert` or of the machinery that changed (`nn`, `sim`, `policy`, `random`), and record anew what the failure shows.

use provenir_nn::device::LIBTORCH;
use provenir_policy::PolicySet;

use super::*;

/// Of `policy` and `history`, on the platform they were recorded on.
const PLATFORM: &str = "AMD EPYC avx avx2 LibTorch 2.11.0";
const DIGESTS: [[&str; 2]; 2] = [
    [
        "1686e0beabad38abb3da5622e541afaab74a794a128a2e7f1dbd00c5c45125e2",
        "8684347451e21463bdabf4363f2465c21c16696df24c20a82d9a81fe217bb8bb",
    ],
    [
        "9cefc0a9ada3147f0886df24030f04906851a18b9a152d82bc8ba110c55911a1",
        "2ad221c5f564dd3b7a2d4796a06230fbdc2ebf3522551971e977ef7cfb587994",
    ],
];

/// What the policies do at an observation, on any platform within the tolerance.
const ACTIONS: [[f32; 3]; 2] = [
    [-0.115_485_61, -0.027_995_825, 0.098_269_94],
    [-0.071_559_61, 0.026_148_2, 0.023_718_715],
];
const TOLERANCE: f32 = 2e-3;

/// What decides which kernels LibTorch runs.
fn platform() -> String {
    let described = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = described.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": "))
            .map_or("", |(_, value)| value)
            .to_owned()
    };
    let flags = field("flags");
    let vectors = flags.split(' ').filter(|flag| flag.starts_with("avx"));
    format!(
        "{} {} LibTorch {LIBTORCH}",
        field("model name"),
        vectors.collect::<Vec<_>>().join(" ")
    )
}

#[test]
fn short_trainings_give_what_was_recorded() {
    let outputs = ["sac", "tqc"].map(|algorithm| {
        train(&parameters!({
            "algorithm": algorithm, "steps": 140, "hidden": [32, 32], "batch": 32, "keep": "last", "learning_rate": 3e-3,
        }))
    });
    let observation: Vec<f32> = (0..15).map(|number| 0.1 * (number - 7) as f32).collect();
    let found = outputs.each_ref().map(|outputs| {
        let set = PolicySet::from_table(outputs.get_table("policy").unwrap()).unwrap();
        let mut actions = [0.0; 3];
        set.last().actor().act(&observation, &mut actions);
        actions
    });
    let mut pairs = found.as_flattened().iter().zip(ACTIONS.as_flattened());
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() <= TOLERANCE;
    assert!(pairs.all(near), "{found:?}");
    if platform() == PLATFORM {
        let found = outputs
            .each_ref()
            .map(|outputs| content(outputs).map(|digest| digest.hex()));
        assert_eq!(found, DIGESTS.map(|digests| digests.map(str::to_owned)));
    } else {
        eprintln!(
            "skipped the digests: recorded on `{PLATFORM}`, this is `{}`",
            platform()
        );
    }
}
