//! What short trainings gave when they were recorded. A difference means that results changed: raise the revision of
//! `expert` or of the machinery that changed (`nn`, `sim`, `policy`, `random`), and record anew what the failure shows.

use provenir_nn::device::LIBTORCH;
use provenir_policy::PolicySet;

use super::*;

/// Of `policy` and `history`, on the platform they were recorded on.
const PLATFORM: &str = "Intel(R) Xeon(R) Processor avx avx2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_fp16 LibTorch 2.11.0";
const DIGESTS: [[&str; 2]; 2] = [
    [
        "facd582d84fe63434e3f97f7bd41a18f35ee57cd50631d8b796a0ce5d0ad514b",
        "44e6c975254460c0c5e59b600f4a9a92ad029331249e03636e1179b3d11456e2",
    ],
    [
        "0ccf33ceae6ca376c88602392f157538bd919e77070be483d9bce0c4b1c44f56",
        "bbf87e708d4a5e62f24035f9db1d414a18db81debc9e1dc64261f9ac2be5a13b",
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
