//! What short trainings gave when they were recorded. A difference means that results changed: raise the revision of
//! `train` or of the machinery that changed (`nn`, `policy`, `random`), and record anew what the failure shows.

use provenir_nn::device::LIBTORCH;

use super::*;

/// Of `policy`, `history` and `trust`, on the platform they were recorded on.
const PLATFORM: &str = "Intel(R) Xeon(R) Processor avx avx2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_fp16 LibTorch 2.11.0";
const DIGESTS: [[&str; 3]; 2] = [
    [
        "7b3756204fb5a7633426626c96c84c5de538bb28495d412d26c1ee4de2cb4d30",
        "c2ec6db39c658999cfe366b9b36ea889e0b83ca5f37172b69d5308b3eec450a6",
        "4270322232232cf06ec3f0ce712003c60a3e34270430e840a09a639b8a4786f1",
    ],
    [
        "d941236ab2d5a4ca7cf88a58faa3cc7dcd666e406374ce16591607359c2c3e56",
        "6937144c60cde7c9d8a7481c12718749c58380c1903d53146ffafc9c9a4e6910",
        "79e991781059f8eecc9c5bb31c5abb496c2fa629bdb155fc19119fa639daef06",
    ],
];

/// What the policies do at the first two observations, on any platform within the tolerance.
const ACTIONS: [[f32; 4]; 2] = [
    [0.047_087_68, -0.109_233_26, 0.007_934_119, 0.191_916_51],
    [0.047_376_417, -0.109_734_77, 0.010_521_9, 0.192_292_9],
];
const TOLERANCE: f32 = 2e-4;

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
    let demos = with_outliers(demonstrations(700, 10), 70);
    let outputs = ["bc", "rbc"].map(|method| {
        train(
            &parameters!({
                "method": method, "hidden": [64, 64], "epochs": 4, "seed": 1, "rbc": { "assumed_epsilon": 0.1 },
            }),
            &demos,
        )
    });
    let found = outputs
        .each_ref()
        .map(|outputs| actions(outputs, &demos.observation.select(&[0, 1])).into_values());
    let mut pairs = found.iter().flatten().zip(ACTIONS.as_flattened());
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() <= TOLERANCE;
    assert!(pairs.all(near), "{found:?}");
    if platform() == PLATFORM {
        let digest = |outputs: &Outputs, port| outputs.get_table(port).unwrap().content().hex();
        let found = outputs
            .each_ref()
            .map(|outputs| ["policy", "history", "trust"].map(|port| digest(outputs, port)));
        assert_eq!(found, DIGESTS.map(|digests| digests.map(str::to_owned)));
    } else {
        eprintln!(
            "skipped the digests: recorded on `{PLATFORM}`, this is `{}`",
            platform()
        );
    }
}
