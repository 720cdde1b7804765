//! Files made to harm: each gives an error, and none gives a panic, a hang or a huge allocation.

use proptest::prelude::*;
use provenir_stable_baselines::{
    ArchiveError, Error, NetworkError, NormalizationError, PickleError, WeightsError,
};
use zip::CompressionMethod;

use crate::support::{
    Pickle, View, archive, metadata, pth, pth_of, read_agent, statistics, storages, vec_normalize, views, zip,
};

const ARCHIVE: &[u8] = include_bytes!("../fixtures/ppo.zip");
const STATISTICS: &[u8] = include_bytes!("../fixtures/ppo.pkl");

/// Why the statistics are refused beside a sound archive.
fn statistics_refusal(statistics: &[u8]) -> NormalizationError {
    match read_agent(ARCHIVE, Some(statistics), None) {
        Err(Error::Normalization(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn pickle_refusal(pickle: &[u8]) -> PickleError {
    match statistics_refusal(pickle) {
        NormalizationError::Pickle(error) => error,
        error => panic!("{error}"),
    }
}

fn weights_refusal(network: &[u8]) -> WeightsError {
    match read_agent(&archive(&metadata(""), network), None, None) {
        Err(Error::Network(NetworkError::Weights(error))) => error,
        other => panic!("{other:?}"),
    }
}

fn archive_refusal(bytes: &[u8]) -> ArchiveError {
    match read_agent(bytes, None, None) {
        Err(Error::Archive(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pickle_that_would_run_a_command_is_refused_by_what_it_asks_for() {
    let command = Pickle::new()
        .global("os", "system")
        .raw(b"(")
        .text("touch /tmp/harm")
        .raw(b"tR")
        .stop();
    assert_eq!(
        read_agent(ARCHIVE, Some(&command), None).unwrap_err().to_string(),
        "the `VecNormalize` file: this pickle asks for `os.system`, which is not on the list of what a \
         Stable-Baselines3 file may contain; it was not run"
    );
    let hidden = vec_normalize(|pickle| {
        pickle
            .text("builtins")
            .text("eval")
            .raw(b"\x93")
            .text("1")
            .raw(b"\x85R")
    });
    assert_eq!(
        pickle_refusal(&hidden),
        PickleError::Forbidden("builtins.eval".to_owned())
    );
    let network = weights_refusal(&pth_of(&command, &[]));
    assert!(matches!(network, WeightsError::Pickle(PickleError::Forbidden(name)) if name == "os.system"));
}

#[test]
fn what_a_refused_name_shows_is_short_and_printable() {
    let name = format!("\u{1b}[31m\u{202e}{}", "x".repeat(100_000));
    let PickleError::Forbidden(shown) = pickle_refusal(&Pickle::new().global("os", &name).stop()) else {
        panic!()
    };
    assert!(shown.starts_with("os.\\u{1b}[31m\\u{202e}xxx"));
    assert!(shown.len() < 300);
}

#[test]
fn instructions_that_only_executing_readers_need_are_unknown() {
    // INST, OBJ, persistent text, extension registry, buffers out of band, and protocol 0's numbers.
    for code in [
        b'i', b'o', b'P', 0x82, 0x83, 0x84, 0x97, 0x98, b'I', b'L', b'F', b'S', b'V', b'g', b'p',
    ] {
        let pickle = Pickle::new().raw(&[code, b'0', b'\n', b'.']).0;
        assert_eq!(pickle_refusal(&pickle), PickleError::Instruction { at: 2, code });
    }
}

#[test]
fn calls_of_anything_but_an_imported_name_are_refused() {
    // The result of a call, called; a text, called; an argument list that is no tuple.
    let twice = Pickle::new().global("numpy", "dtype").raw(b")R)R").stop();
    let text = Pickle::new().text("os.system").raw(b")R").stop();
    let list = Pickle::new().global("numpy", "dtype").raw(b"]R").stop();
    for pickle in [twice, text, list] {
        assert!(matches!(pickle_refusal(&pickle), PickleError::Malformed { .. }));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for end in 0..STATISTICS.len() {
        statistics_refusal(&STATISTICS[..end]);
    }
    for end in 0..ARCHIVE.len() {
        archive_refusal(&ARCHIVE[..end]);
    }
    let network = pth(&views(), &storages());
    for end in 0..network.len() {
        weights_refusal(&network[..end]);
    }
}

#[test]
fn lengths_beyond_the_end_are_refused() {
    for (code, length) in [
        (b"X".as_slice(), u32::MAX.to_le_bytes().as_slice()),
        (b"B", &u32::MAX.to_le_bytes()),
        (b"\x8b", &u32::MAX.to_le_bytes()),
        (b"\x8b", &(-1_i32).to_le_bytes()),
        (b"\x8d", &u64::MAX.to_le_bytes()),
        (b"\x8e", &u64::MAX.to_le_bytes()),
        (b"\x96", &(u64::MAX / 2).to_le_bytes()),
        (b"\x8c", &[255]),
        (b"C", &[255]),
        (b"\x8a", &[255]),
    ] {
        let pickle = Pickle::new().raw(code).raw(length).raw(b"abc").stop();
        assert_eq!(pickle_refusal(&pickle), PickleError::Truncated(pickle.len()));
    }
}

#[test]
fn nesting_is_bounded_or_harmless() {
    let marks = Pickle::new().raw(&vec![b'('; 100_000]).0;
    assert!(matches!(pickle_refusal(&marks), PickleError::TooLarge { .. }));
    // A tuple in a tuple in a tuple …: built, never walked, dropped without recursion.
    let tuples = Pickle::new().raw(b")").raw(&vec![0x85; 500_000]).stop();
    assert!(matches!(
        statistics_refusal(&tuples),
        NormalizationError::NoVecNormalize
    ));
    let endless = Pickle::new().raw(&vec![b'N'; 2_000_000]).stop();
    assert!(matches!(pickle_refusal(&endless), PickleError::TooLarge { .. }));
}

#[test]
fn values_that_contain_themselves_are_refused() {
    let list = Pickle::new().raw(b"]q\x00h\x00a").stop();
    assert!(matches!(
        statistics_refusal(&list),
        NormalizationError::NoVecNormalize
    ));
    // The statistics are the object that holds them; its state holds itself; a key is the dict.
    let itself = Pickle::new()
        .global("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize")
        .raw(b")\x81q\x00}q\x01(")
        .text("norm_obs")
        .bool(true)
        .text("obs_rms")
        .raw(b"h\x00h\x01h\x01ub")
        .stop();
    assert!(matches!(
        statistics_refusal(&itself),
        NormalizationError::Attribute { name: "obs_rms", .. }
    ));
    let state = Pickle::new()
        .global("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize")
        .raw(b")\x81q\x00h\x00b")
        .stop();
    assert!(matches!(
        statistics_refusal(&state),
        NormalizationError::Attribute { .. }
    ));
    let dict = Pickle::new().raw(b"}q\x00").text("a").raw(b"h\x00s").stop();
    assert!(matches!(
        weights_refusal(&pth_of(&dict, &[])),
        WeightsError::NoStateDict(_)
    ));
}

#[test]
fn stacks_that_run_dry_are_refused() {
    for instructions in [
        b".".as_slice(),
        b"t.",
        b"\x85.",
        b"a.",
        b"(a.",
        b"(u.",
        b"N(s.",
        b"b.",
        b"R.",
        b"0",
        b"1",
        b"q\x00",
        b"h\x05.",
        b"Q.",
        b"\x93.",
        b"(N.",
        b"NN.",
        b"}(Nu.",
        b"N.N",
    ] {
        let pickle = Pickle::new().raw(instructions).0;
        assert!(
            matches!(pickle_refusal(&pickle), PickleError::Malformed { .. }),
            "{instructions:?}"
        );
    }
    assert!(matches!(
        pickle_refusal(b"\x80\x06N."),
        PickleError::Malformed { .. }
    ));
}

#[test]
fn statistics_of_another_shape_type_or_order_are_refused() {
    let eight = [0_u8; 24];
    let array = |code: &str, order: &str, length: usize| {
        vec_normalize(|pickle| {
            pickle
                .global("stable_baselines3.common.running_mean_std", "RunningMeanStd")
                .raw(b")\x81}(")
                .text("mean")
                .array(code, order, length, &eight)
                .text("var")
                .vector(&[1.0; 3])
                .raw(b"ub")
        })
    };
    for pickle in [
        array("f4", "<", 6),
        array("f8", ">", 3),
        array("f8", "<", 4),
        array("O", "|", 3),
        array("f8", "<", 1 << 30),
    ] {
        assert!(matches!(
            statistics_refusal(&pickle),
            NormalizationError::Attribute {
                name: "obs_rms.mean",
                ..
            }
        ));
    }
    for variance in [
        [1.0, f64::NAN, 1.0, 1.0, 1.0],
        [1.0, -1.0, 1.0, 1.0, 1.0],
        [f64::INFINITY; 5],
    ] {
        let pickle = statistics(&[0.0; 5], &variance);
        assert!(matches!(
            statistics_refusal(&pickle),
            NormalizationError::Attribute {
                name: "obs_rms.var",
                ..
            }
        ));
    }
    let dict = vec_normalize(|pickle| pickle.raw(b"}"));
    assert!(matches!(
        statistics_refusal(&dict),
        NormalizationError::DictObservation
    ));
}

#[test]
fn archives_that_unfold_beyond_all_measure_are_refused() {
    let zeros = vec![0; 65 << 20];
    let network = pth(&views(), &storages());
    let bomb = zip(
        &[("policy.pth", &network), ("data", &zeros)],
        CompressionMethod::Deflated,
    );
    assert!(bomb.len() < 1 << 20);
    assert!(matches!(archive_refusal(&bomb), ArchiveError::TooLarge { name, .. } if name == "data"));
    let description = crate::support::state_dict(&views());
    let entries: [(&str, &[u8]); 2] = [
        ("archive/data.pkl", &description),
        ("archive/data/mlp_extractor.policy_net.0.weight", &zeros),
    ];
    let network = zip(&entries, CompressionMethod::Deflated);
    assert!(matches!(
        weights_refusal(&network),
        WeightsError::Archive(ArchiveError::TooLarge { .. })
    ));
}

/// A view with strides of zero names many numbers in a small storage.
#[test]
fn tensors_larger_than_any_agents_are_refused() {
    let mut all = views();
    all[0].shape = vec![1 << 30, 1 << 30];
    all[0].strides = vec![0, 0];
    all[1].shape = vec![1 << 30];
    all[1].strides = vec![0];
    assert!(matches!(
        weights_refusal(&pth(&all, &storages())),
        WeightsError::TooLarge
    ));
    all[0].shape = vec![i32::MAX; 40];
    all[0].strides = vec![0; 40];
    let error = read_agent(&archive(&metadata(""), &pth(&all, &storages())), None, None).unwrap_err();
    assert!(matches!(error, Error::Network(NetworkError::Shape { .. })));
}

#[test]
fn directories_that_lie_are_refused() {
    // A ZIP64 record of 2^40 entries, its locator, and the classic record that points to them.
    let mut bytes = b"PK\x06\x06".to_vec();
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend((1_u64 << 40).to_le_bytes());
    bytes.extend((1_u64 << 40).to_le_bytes());
    bytes.extend([0; 16]);
    bytes.extend(b"PK\x06\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0");
    bytes.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    assert!(matches!(archive_refusal(&bytes), ArchiveError::Entries));

    let names: Vec<String> = (0..5000).map(|number| format!("{number}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(matches!(
        archive_refusal(&zip(&many, CompressionMethod::Stored)),
        ArchiveError::Entries
    ));

    let twice = zip(&[("data", b"{}"), ("datb", b"{}")], CompressionMethod::Stored);
    let twice: Vec<u8> = replace(&twice, b"datb", b"data");
    assert!(matches!(archive_refusal(&twice), ArchiveError::Duplicates));
    assert!(matches!(
        archive_refusal(&zip(&[("other", b"")], CompressionMethod::Stored)),
        ArchiveError::Missing(_)
    ));
    for bytes in [b"".as_slice(), b"PK", b"not an archive", &[0; 1000]] {
        assert!(matches!(archive_refusal(bytes), ArchiveError::CutShort));
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = bytes.to_vec();
    for at in 0..replaced.len() - from.len() {
        if replaced[at..].starts_with(from) {
            replaced[at..at + to.len()].copy_from_slice(to);
        }
    }
    replaced
}

/// An altered byte of a stored entry is noticed by its checksum.
#[test]
fn altered_weights_are_noticed() {
    let network = pth(&views(), &storages());
    let altered = replace(&network, &1.0_f32.to_le_bytes(), &2.0_f32.to_le_bytes());
    assert_ne!(network, altered);
    assert!(matches!(
        weights_refusal(&altered),
        WeightsError::Archive(ArchiveError::Entry { .. })
    ));
    let whole = archive(&metadata(""), &network);
    let altered = replace(&whole, b"0.99", b"0.98");
    assert!(matches!(archive_refusal(&altered), ArchiveError::Entry { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn altered_bytes_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        in_statistics: bool,
    ) {
        let (mut archive, mut statistics) = (ARCHIVE.to_vec(), STATISTICS.to_vec());
        let target = if in_statistics { &mut statistics } else { &mut archive };
        for (at, byte) in flips {
            let at = at.index(target.len());
            target[at] = byte;
        }
        let _ = read_agent(&archive, Some(&statistics), None);
    }

    /// Checksums keep most altered bytes of an archive from the pickle; here they reach it.
    #[test]
    fn altered_descriptions_of_tensors_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut pickle = crate::support::state_dict(&views());
        for (at, byte) in flips {
            let at = at.index(pickle.len());
            pickle[at] = byte;
        }
        let _ = read_agent(&archive(&metadata(""), &pth_of(&pickle, &storages())), None, None);
    }

    #[test]
    fn views_of_any_shape_never_panic(
        shape in prop::collection::vec(-1..6_i32, 0..4),
        strides in prop::collection::vec(-1..6_i32, 0..4),
        offset in -1..20_i32,
        length in -1..20_i32,
        which in 0..4_usize,
    ) {
        let mut all: Vec<View> = views();
        let view = &mut all[which];
        (view.shape, view.strides, view.offset, view.length) = (shape, strides, offset, length);
        let _ = read_agent(&archive(&metadata(""), &pth(&all, &storages())), None, None);
    }

    #[test]
    fn random_instructions_never_panic(instructions in prop::collection::vec(instruction(), 0..60)) {
        let pickle = Pickle::new().raw(&instructions.concat()).stop();
        let _ = read_agent(ARCHIVE, Some(&pickle), None);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_agent(&bytes, Some(&bytes), None);
        let _ = read_agent(ARCHIVE, Some(&bytes), None);
        let _ = read_agent(&archive(&metadata(""), &bytes), None, None);
    }
}

/// An instruction with a plausible argument.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let plain = prop::sample::select(b"(01N)]}.taeldusRbQ\x81\x85\x86\x87\x88\x89\x93\x94".to_vec());
    let memo = (prop::sample::select(b"qhK".to_vec()), 0..6_u8);
    let pieces: Vec<Vec<u8>> = [
        Pickle(Vec::new()).global("numpy", "dtype"),
        Pickle(Vec::new()).global("collections", "OrderedDict"),
        Pickle(Vec::new()).global("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize"),
        Pickle(Vec::new()).global("stable_baselines3.common.running_mean_std", "RunningMeanStd"),
        Pickle(Vec::new()).text("norm_obs").bool(true),
        Pickle(Vec::new()).text("obs_rms"),
        Pickle(Vec::new()).text("mean").vector(&[1.0]),
        Pickle(Vec::new()).float(1.0),
    ]
    .map(|pickle| pickle.0)
    .into();
    prop_oneof![
        4 => plain.prop_map(|code| vec![code]),
        2 => memo.prop_map(|(code, index)| vec![code, index]),
        2 => prop::sample::select(pieces),
    ]
}
