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
            "7835560a31e852489ac2f99298f728f70b4bac47d842ecd41ebd88486bfa017c",
            "abe5557f352e4331fc3f2a7d504cbd557f89dc4c34bf12b8808c4d97e4c38def",
            "3255007c2c7672176f8e4bc01730cdd36ac350d62d36755c5c8b0e8bdcc48b05",
        ],
        [0.047_087_67, -0.109_233_25, 0.007_934_122, 0.191_916_5],
    ),
    (
        "rbc",
        [
            "c10685ed1365d54732dfeb44791594cbd2cc994c9186adb58c0abdedc135b0f0",
            "6b058be40b9897ece745940a05b4b68951be537b321405f7ef9e15c41b865b10",
            "1815b0eace1027a241746d5c425858e53696e33af100c6163544490282e0e9fb",
        ],
        [0.047_376_424, -0.109_734_75, 0.010_521_891_5, 0.192_292_9],
    ),
    (
        "noisy-bc",
        [
            "440d77e56d2059993583863c74f7f473328efcbf35041437f7fcc613a00bcf03",
            "d7850ce9e79f0e624bcd9edcb18cfa481b4f260cb2af4a6b0f67f12701babb6a",
            "74108c7c4bdcf8c4db8d9fccf73517a02568421f8b24d81275b63c17cd692994",
        ],
        [-0.128_767_2, -0.133_199_68, 0.053_972_222, -0.139_023_9],
    ),
    (
        "trimmed",
        [
            "26dee482b938f2fcd431fc27d7daf44ab3159a1e36711c5d25534aa2b3f6eae8",
            "318f49ebf57f56eac0e38e173a06691f06902debf230cbf1d793ced2f3c8ce73",
            "1dc2a34ae7a2a309fe9b7f6420c897c5c5f1b34e6c020f0623a67361e3c10029",
        ],
        [0.081_275_81, -0.099_976_33, 0.019_899_407, 0.217_484_73],
    ),
    (
        "mixture",
        [
            "00d2f696d54871bfe7acbaf16875b508860da14efbc4d043f03c025b38908295",
            "e477d3cbc5b0a8d1417067b6ed6cfa5a1348034b81b58dd7b3b358f1c2df3a45",
            "e3dfdbc9b2ccafe6ca73576ca794e3f5ee5f608856da4e9e487d9337769569b3",
        ],
        [0.063_475_646, -0.106_325_686, 0.014_348_044, 0.203_004_27],
    ),
    (
        "robust-loss",
        [
            "8f841760b51f43f243c0a094b8b2a0213407beb739f00b630b3d19503dc4ea1f",
            "757fd21e1d69c93c0aa683f9d75dbd7ba285759aeca552dc23790510dbb18307",
            "66724069f97105e143ee39657f0585bf2fd37f126e48525345e1e9a0378ea8f7",
        ],
        [0.048_772_25, -0.108_597_15, 0.008_765_046_5, 0.193_929_7],
    ),
    (
        "co-teaching",
        [
            "d60ae365e97103a4e312dfc0c0a02d452a1c8b3b6c91513f98e65b72b9521ae1",
            "8debbd02454ad2ae9d8db47fa181defce4ff9894704e0f42c030f6bf1b514a03",
            "3fc79feb89b893ab66b848534c0b2e127f20b3d00b8b1d9bd6f26f92e07ba3e3",
        ],
        [0.049_158_752, -0.112_463_32, 0.008_389_916, 0.188_591_61],
    ),
    (
        "filter",
        [
            "9a5cabe1518416b6cc2b4c071fb420cb3b17cfee39f191dcfd073aac4a54cf6f",
            "c24fee40b0c69c176e26cb0ac675a7ca98c3a7f14c9b7159e1ad68d8d7ae30a6",
            "09983471b4f25bcae4594eac2d402ec48f5ea30d79a4f9ca1d28a7e941a89d50",
        ],
        [0.090_164_83, -0.019_752_268, 0.007_076_543_3, 0.199_200_93],
    ),
    (
        "range-filter",
        [
            "cb72c4aa839ad1f399e2cd48735807294d560c8738c8ccc5c4bf755dae7b4048",
            "b5b2e58fd94f94d48e9f98b7496e7b9e655689808f0ffed4ba5add9e5d0fcdea",
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
            assert_eq!(["policy", "history", "trust"].map(digest), digests, "{method}");
        }
    }
    if !recorded_here {
        eprintln!(
            "skipped the digests: recorded on `{PLATFORM}`, this is `{}`",
            platform()
        );
    }
}
