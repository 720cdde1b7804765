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
            "ee9223bd07db5cefda9bf7ab9966078b0436844a76f36322ae5eae1b467f20a3",
            "b2f54b099e63059b375594d2b087e1ec12a0baec0a497ab190adec192e3add26",
            "3255007c2c7672176f8e4bc01730cdd36ac350d62d36755c5c8b0e8bdcc48b05",
        ],
        [0.047_087_67, -0.109_233_25, 0.007_934_122, 0.191_916_5],
    ),
    (
        "rbc",
        [
            "3321358dd091b460e21c34921ea40dee2e30af1dfec08f91b91913b2db96c4a4",
            "4dbd55244f336aa399ef7c9c0a25076c884f3fb0d54e816413a10fb26da0a12a",
            "1815b0eace1027a241746d5c425858e53696e33af100c6163544490282e0e9fb",
        ],
        [0.047_376_424, -0.109_734_75, 0.010_521_891_5, 0.192_292_9],
    ),
    (
        "noisy-bc",
        [
            "98fc3f42637b63232746f54e6b291a2ba145e6042f168117754e944bfd10330e",
            "0e01b9a13ee3608efcc5f285fd7ff0942c7dc5b73219bef42fccc1ad285f8341",
            "07aaa1d141847e7d2e8757d30a19d33d9a5081d654b1dcf501cc7fc38583d848",
        ],
        [-0.128_767_2, -0.133_199_68, 0.053_972_222, -0.139_023_9],
    ),
    (
        "trimmed",
        [
            "6b1c28a2db7479fa1582c62c7cbeedc6b874709e1cdd52a172d31b7c8128fdae",
            "eb2df18c9dc53992b7bbf3bc408dfe31f7bf912250c863bb70cb748c2e2d4ebb",
            "1dc2a34ae7a2a309fe9b7f6420c897c5c5f1b34e6c020f0623a67361e3c10029",
        ],
        [0.081_275_81, -0.099_976_33, 0.019_899_407, 0.217_484_73],
    ),
    (
        "mixture",
        [
            "19badf8428719e0e1cdee8c1e5f650352fb789650de43ed73adecff5f97ca01c",
            "7bc402f84b9f6bbccba8714718cda4f95cd4f34c9d832874a7d0915b08479a9d",
            "5c382988bad406d54e8b19b61fc9b085a0eaa0297e9bd780819414f0af8f6fb6",
        ],
        [0.063_475_646, -0.106_325_686, 0.014_348_044, 0.203_004_27],
    ),
    (
        "robust-loss",
        [
            "b2d9076e94090e87492bab59bf915f51ecdb70cc4ecbc4d83a244c9f71baa53f",
            "0272c8e9668be13d54ea0868ce2ab37a1909d94f9d8dd39c02a88b7e2e907897",
            "6e075ce6b91fccdc4e4100b234753ab73ee926679b9ac1ac75c49c81c9834717",
        ],
        [0.048_772_25, -0.108_597_15, 0.008_765_046_5, 0.193_929_7],
    ),
    (
        "co-teaching",
        [
            "8abfda479063e11c0bb1aff87650359266f126b5ebdd507630709ee0e8f5e8f9",
            "0562f05d9e0f31dab6d1ca65d08f4aef7166979d1e4d5d589f6dcb17de6be735",
            "3fc79feb89b893ab66b848534c0b2e127f20b3d00b8b1d9bd6f26f92e07ba3e3",
        ],
        [0.049_158_752, -0.112_463_32, 0.008_389_916, 0.188_591_61],
    ),
    (
        "filter",
        [
            "986d93c241a5acfbbc295bcfc96c01d0a78982be93a839a9e0cda30c703c7830",
            "4b8b9cf0877b4c07d91d3e28bdbd2a98d55a2d9588c4389eb5a483f9e44a116a",
            "09983471b4f25bcae4594eac2d402ec48f5ea30d79a4f9ca1d28a7e941a89d50",
        ],
        [0.090_164_83, -0.019_752_268, 0.007_076_543_3, 0.199_200_93],
    ),
    (
        "range-filter",
        [
            "60336f8a4b46205340bdb12b681cdd12cdbb54fcde063cc2b06c31680e306698",
            "3de8f9c4fad58861345ffe08ac6a40e4c98e69aa54c476c5cb1605bc58582020",
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
