//! The RL Zoo's agents, where they lie beside the repository.

use std::path::{Path, PathBuf};

use crate::support::{assert_acts, read_agent};

/// Actions of the Hopper agent, computed in double precision by numpy from the weights as `torch.load` gives them and
/// the statistics cut out of the pickle; the observations are those of [`observation`].
const HOPPER: [[f64; 3]; 6] = [
    [-0.972_358_443, 0.599_759_053, -1.0],
    [0.572_244_778, -0.139_625_165, -0.483_384_596],
    [0.578_545_454, 0.159_789_212, -0.011_698_152],
    [0.227_387_013, 0.381_016_547, 0.552_624_723],
    [-1.0, 0.440_487_945, -0.513_022_276],
    [-0.060_840_143, -0.181_500_543, -0.666_396_239],
];

/// An observation near the statistics' mean; those that never vary (1, 2, 4 and 6) are where they always are.
fn observation(number: usize) -> [f32; 16] {
    const MIDDLE: [f32; 16] = [
        0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 0.0, -0.25, 1.0, 0.0, 0.375, 0.0, 0.25, 0.0, 0.5, 0.625,
    ];
    std::array::from_fn(|index| match index {
        1 | 2 | 4 | 6 => MIDDLE[index],
        _ => MIDDLE[index] + (((7 * index + 13 * number) % 17) as f32 - 8.0) / 32.0,
    })
}

/// The files of an agent; `None`, said loudly, where they are not there.
fn files(robot: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/zoo-ppo")
        .join(robot);
    if !folder.exists() {
        announce(&folder);
        return None;
    }
    let read = |name| fs_err::read(folder.join(name)).unwrap();
    Some((read("ppo.zip"), read("vecnormalize.pkl")))
}

#[expect(clippy::print_stderr, reason = "a test that checks nothing says so")]
fn announce(folder: &Path) {
    eprintln!("SKIPPED: the RL Zoo's agents are not at {}", folder.display());
}

#[test]
fn the_hopper_agent_acts_as_numpy_computes() {
    let Some((archive, statistics)) = files("Hopper") else {
        return;
    };
    let policy = read_agent(&archive, Some(&statistics), None).unwrap();
    for (number, expected) in HOPPER.iter().enumerate() {
        assert_acts(&policy, &observation(number), expected, 1e-5);
    }
}

#[test]
fn every_agent_is_read() {
    for (robot, observations, actions) in [
        ("Hopper", 16, 3),
        ("Walker2D", 23, 6),
        ("HalfCheetah", 27, 6),
        ("Ant", 29, 8),
    ] {
        let Some((archive, statistics)) = files(robot) else {
            return;
        };
        let policy = read_agent(&archive, Some(&statistics), None).unwrap();
        let widths: Vec<usize> = policy
            .layers()
            .iter()
            .map(provenir_policy::Layer::outputs)
            .collect();
        assert_eq!(
            (policy.observation_width(), &widths[..]),
            (observations, [256, 256, actions].as_slice())
        );
    }
}
