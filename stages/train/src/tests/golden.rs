//! What short trainings gave when they were recorded. A difference means that results changed: raise the revision of
//! `train` or of the machinery that changed (`nn`, `policy`, `random`), and record anew what the failure shows.

use provenir_nn::device::LIBTORCH;

use super::*;

/// Where the digests were recorded.
const PLATFORM: &str = "AMD EPYC avx avx2 LibTorch 2.11.0";
/// Of each method: digests of `policy`, `history` and `trust`, on that platform, and what the policies do at the first two
/// observations, on any platform within the tolerance.
const RECORDED: [(&str, [&str; 3], [f32; 4]); 9] = [
    (
        "bc",
        [
            "8c6e86d08a33952d248c6517f297f6bd612794ca1658c276efe9aeaa7915cdc0",
            "4686c019b365affd19d300064e89ba67d45057815786a2676bc07f654f8e4534",
            "3255007c2c7672176f8e4bc01730cdd36ac350d62d36755c5c8b0e8bdcc48b05",
        ],
        [0.047_087_67, -0.109_233_25, 0.007_934_122, 0.191_916_5],
    ),
    (
        "rbc",
        [
            "acd5d986a57a313c09169d65f28fd70ac9286854eb2829515d6ea07ef268f0a2",
            "e3d09a2504157036676d162814a989ca474327cb029d7ec4f51982874a1a4b07",
            "1815b0eace1027a241746d5c425858e53696e33af100c6163544490282e0e9fb",
        ],
        [0.047_376_424, -0.109_734_75, 0.010_521_891_5, 0.192_292_9],
    ),
    (
        "noisy-bc",
        [
            "f55b3aaf0c92d5cb1d5707e31f1d99a86bba32692a1c17d15c9f9e347adbb41f",
            "f06d62255dc8cbdeb9f13de76e8b87d8c8e5323a7789b7cc6d21f558c7f6177e",
            "0efef1cdebaa13d167220b99494592b2fafc6bb5250a39efd801e3d36f8c4551",
        ],
        [-0.128_767_2, -0.133_199_68, 0.053_972_222, -0.139_023_9],
    ),
    (
        "trimmed",
        [
            "5498fcda5c9df7ccf5a148bc51a47304d8588580c4d8d2c62f5b3194d0c80880",
            "1bfa4c18e7021bee3337c42b1ee3f506a0fabb212525d4297e074d8187daee06",
            "1dc2a34ae7a2a309fe9b7f6420c897c5c5f1b34e6c020f0623a67361e3c10029",
        ],
        [0.081_275_81, -0.099_976_33, 0.019_899_407, 0.217_484_73],
    ),
    (
        "mixture",
        [
            "77b13d5fb386c1802fc79eee2b7ac11425dba5d99f830807c033e22543bf2a57",
            "3c045addddf5d9c35891adc6722b2134d09bf5173ee83264f587e64d19cc7836",
            "a670ee7d45c22fff5c1f1ff018972d61f5e426d71887f4e434fdba1aedecabfb",
        ],
        [0.063_475_646, -0.106_325_686, 0.014_348_044, 0.203_004_27],
    ),
    (
        "robust-loss",
        [
            "836ad01be742f4cb03916db2173763d95169ffb534d7a7abd7eb6b3360a5749b",
            "1f01efc39478cdd6d8465b9d18eb2e6e428312d0d39846fa566858fcc44f86b1",
            "40d182905cccd8edf2e1d08ae8d4423c0fdc6b570d2486833c1049e5d1c21f91",
        ],
        [0.048_772_25, -0.108_597_15, 0.008_765_046_5, 0.193_929_7],
    ),
    (
        "co-teaching",
        [
            "d42a7b7e45ec5ade4fcd350a1ea32ab85061fcc5afe6471cb62894bd6c048054",
            "937af91d47e6ebc133be7361c4bc475dcd61f369a4e51f110bbf45bbdd29b2bd",
            "3fc79feb89b893ab66b848534c0b2e127f20b3d00b8b1d9bd6f26f92e07ba3e3",
        ],
        [0.049_158_752, -0.112_463_32, 0.008_389_916, 0.188_591_61],
    ),
    (
        "filter",
        [
            "e4e3fbe32623102f714dd0700a3a8a5e774810564429477815cab28d5487d54d",
            "94789c1fa979558197b6efbcc6d9d3ef58b667276d35b99408258711fb9fd0fc",
            "09983471b4f25bcae4594eac2d402ec48f5ea30d79a4f9ca1d28a7e941a89d50",
        ],
        [0.090_164_83, -0.019_752_268, 0.007_076_543_3, 0.199_200_93],
    ),
    (
        "range-filter",
        [
            "fd838989baceb428bfdf75d61f7a95377da57435db661bb4a7e68314c1f5c1b3",
            "207436fad74ff393b8497d45a6eef5a2272576ba0e0754e192772405996ebf02",
            "de483778250c73971d6caea0f7ece61d4dfb1e6785eb11c99726e0eed3b06cd1",
        ],
        [0.064_021_066, -0.106_332_15, 0.016_454_3, 0.192_359_85],
    ),
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
    let recorded_here = platform() == PLATFORM;
    let mut changed = Vec::new();
    for (method, digests, expected) in RECORDED {
        let outputs = train(
            &parameters!({
                "method": method, "hidden": [64, 64], "epochs": 4, "seed": 1, "rbc": { "assumed_epsilon": 0.1 },
                "noisy_bc": { "rounds": 2 },
            }),
            &demos,
        );
        let found = actions(&outputs, &demos.observation.select(&[0, 1])).into_values();
        let mut pairs = found.iter().zip(expected);
        assert!(
            pairs.all(|(found, expected)| (found - expected).abs() <= TOLERANCE),
            "{method}: {found:?}"
        );
        if recorded_here {
            let digest = |port| outputs.get_table(port).unwrap().content().hex();
            let found = ["policy", "history", "trust"].map(digest);
            if found != digests {
                changed.push((method, found));
            }
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
    if !recorded_here {
        eprintln!(
            "skipped the digests: recorded on `{PLATFORM}`, this is `{}`",
            platform()
        );
    }
}
