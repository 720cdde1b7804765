//! What short trainings gave when they were recorded. A difference means that results changed: raise the revision of
//! `train` or of the machinery that changed (`nn`, `policy`, `random`), and record anew what the failure shows.

use provenir_nn::device::LIBTORCH;

use super::*;

/// Where the digests were recorded.
const PLATFORM: &str = "Intel(R) Xeon(R) Processor avx avx2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_fp16 LibTorch 2.11.0";
/// Of each method: digests of `policy`, `history` and `trust`, on that platform, and what the policies do at the first two
/// observations, on any platform within the tolerance.
const RECORDED: [(&str, [&str; 3], [f32; 4]); 9] = [
    (
        "bc",
        [
            "7b3756204fb5a7633426626c96c84c5de538bb28495d412d26c1ee4de2cb4d30",
            "249f42a8f02d6b5cb26590ce98a8743b2b2e10bc594e79bfc9f7492f26e7c81e",
            "3255007c2c7672176f8e4bc01730cdd36ac350d62d36755c5c8b0e8bdcc48b05",
        ],
        [0.047_087_68, -0.109_233_26, 0.007_934_119, 0.191_916_51],
    ),
    (
        "rbc",
        [
            "d941236ab2d5a4ca7cf88a58faa3cc7dcd666e406374ce16591607359c2c3e56",
            "ca7ff5f50a2bb9ed27da26130d064de0d320afa5409753055054e568e943aba2",
            "1815b0eace1027a241746d5c425858e53696e33af100c6163544490282e0e9fb",
        ],
        [0.047_376_417, -0.109_734_77, 0.010_521_9, 0.192_292_9],
    ),
    (
        "noisy-bc",
        [
            "5ffb036842381c518d9b860a41dde70d2c62d5525101c824dd7d08af542b2b38",
            "7b60ec5a8e86ae9294b32841a950ec000602007900793e9c73fa929c265daca6",
            "217e023ae8bed85be4a4c683494708f4fb7541b9c1962941e5cd0634131c090d",
        ],
        [-0.128_767_2, -0.133_199_65, 0.053_972_2, -0.139_023_91],
    ),
    (
        "trimmed",
        [
            "f541494ee9fbdacd9ab8e1259d8eca3a0a50839a8ecc0a7049d244361905c3b5",
            "c26206e5cedd668431b6f3ccc989cfa72747c012c7c06d43aa9606b415b6c374",
            "1dc2a34ae7a2a309fe9b7f6420c897c5c5f1b34e6c020f0623a67361e3c10029",
        ],
        [0.081_275_82, -0.099_976_316, 0.019_899_411, 0.217_484_73],
    ),
    (
        "mixture",
        [
            "acd561c77ff163377a57267f8411bf90950c2db999e1d5b4a9927b3de2609227",
            "de87e3d7d90921c0bb8001001c0e20f1fc75f9f170af544690c6d7c240836089",
            "eb9de5041999a46b4777f4a0e0edcce0dce15d00fe2417491f20e6775e7cf18c",
        ],
        [0.063_475_64, -0.106_325_66, 0.014_348_038, 0.203_004_26],
    ),
    (
        "robust-loss",
        [
            "1635316d0316f4569fda4023309a9f123b1a303659fa093e83945aa4566083cf",
            "368f408523e67380450cbf6758badb71037354013c07f7d2ae6436e7ae97c0a1",
            "30459815f17771a98ef660e772b4e1f815c35f1d644c9c5a2ff3d351b33c4b2f",
        ],
        [0.048_772_234, -0.108_597_15, 0.008_765_046_5, 0.193_929_7],
    ),
    (
        "co-teaching",
        [
            "9c20a9c7c09d2110df197b8751d6923e747b65d6714d49eadcbc450c03564ba5",
            "74b28277a3e26e0dafc3318cd8f7cfb542cb565f6ef5e7de3909694bf431e69e",
            "3fc79feb89b893ab66b848534c0b2e127f20b3d00b8b1d9bd6f26f92e07ba3e3",
        ],
        [0.049_158_76, -0.112_463_31, 0.008_389_909, 0.188_591_64],
    ),
    (
        "filter",
        [
            "66d7195c7075bbd2e036a0893a4f4d3e4427743ae1b4657235d72ab266e8014b",
            "9b95579202450628b3ab46ccadd059953d7062d9ed74ab14daeed78113f12315",
            "09983471b4f25bcae4594eac2d402ec48f5ea30d79a4f9ca1d28a7e941a89d50",
        ],
        [0.090_164_83, -0.019_752_264, 0.007_076_552_6, 0.199_200_96],
    ),
    (
        "range-filter",
        [
            "5760ae2d42290db477d4788bd1b72a49221a69efc8f8bee2d97636b897e87f9d",
            "1d5297719b7de6435a1451375a4cb1d52950adefffa8fece3d4a01d5e1292c0a",
            "de483778250c73971d6caea0f7ece61d4dfb1e6785eb11c99726e0eed3b06cd1",
        ],
        [0.064_021_066, -0.106_332_18, 0.016_454_3, 0.192_359_86],
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
