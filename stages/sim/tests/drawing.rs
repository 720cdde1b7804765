//! Where the robot's shapes are, against closed forms.

use provenir_sim::{Capsule, Environment, NAMES, Task};

fn near(found: [f64; 3], expected: [f64; 3]) -> bool {
    found
        .iter()
        .zip(expected)
        .all(|(found, expected)| (found - expected).abs() < 1e-6)
}

fn lowest(capsules: &[Capsule]) -> f64 {
    let bottom = |capsule: &Capsule| capsule.from[2].min(capsule.to[2]) - capsule.radius;
    capsules.iter().map(bottom).fold(f64::INFINITY, f64::min)
}

/// Heights as the MJCF files tell them.
#[test]
fn at_zero_angles_robots_stand_as_they_were_drawn() {
    let at_rest = |name: &str| {
        let environment = Environment::new(Task::named(name).unwrap(), false);
        (environment.torso(), environment.capsules())
    };
    let (torso, capsules) = at_rest("hopper");
    assert!(near(torso.position, [0.0, 0.0, 1.25]));
    assert_eq!(capsules.len(), 4);
    assert!(near(capsules[0].from, [0.0, 0.0, 1.45]) && near(capsules[0].to, [0.0, 0.0, 1.05]));
    assert!((lowest(&capsules) - 0.04).abs() < 1e-6);
    let (_, capsules) = at_rest("walker2d");
    assert_eq!(capsules.len(), 7);
    assert!((lowest(&capsules) - 0.04).abs() < 1e-6);
    let (torso, capsules) = at_rest("half-cheetah");
    assert!(near(torso.position, [0.0, 0.0, 0.7]));
    assert_eq!(capsules.len(), 8);
    // The head: 0.3 m long about (0.6, 0, 0.1), turned by 0.87 about y.
    let (sine, cosine) = 0.87_f64.sin_cos();
    assert!(near(
        capsules[1].to,
        [0.6 + 0.15 * sine, 0.0, 0.8 + 0.15 * cosine]
    ));
    let (torso, capsules) = at_rest("ant");
    assert!(near(torso.position, [0.0, 0.0, 0.75]));
    assert_eq!(capsules.len(), 13);
    assert_eq!(
        (capsules[0].from, capsules[0].radius),
        (capsules[0].to, 0.25),
        "a sphere"
    );
    // Legs lie flat and reach 0.2 + 0.2 + 0.4 m along each diagonal.
    let reach = capsules
        .iter()
        .map(|capsule| capsule.to[0].abs())
        .fold(0.0, f64::max);
    assert!((reach - 0.8).abs() < 1e-6 && capsules.iter().all(|capsule| (capsule.to[2] - 0.75).abs() < 1e-6));
}

#[test]
fn a_turned_joint_turns_what_hangs_on_it() {
    let mut environment = Environment::new(Task::named("hopper").unwrap(), false);
    environment.reset_to(&[-0.1, 0.0, 0.0]);
    let thigh = environment.capsules()[1];
    // About −y at the hip, 1.05 m high; the thigh is 0.45 m long.
    let (sine, cosine) = 0.1_f64.sin_cos();
    assert!(near(thigh.from, [0.0, 0.0, 1.05]));
    assert!(
        near(thigh.to, [-0.45 * sine, 0.0, 1.05 - 0.45 * cosine]),
        "{thigh:?}"
    );
}

/// PyBullet's observations see links as of the last sub-step's start; what is drawn is current.
#[test]
fn poses_are_those_of_the_joints_after_a_step() {
    let mut environment = Environment::new(Task::named("hopper").unwrap(), false);
    environment.reset(3);
    for _ in 0..5 {
        environment.step(&[1.0, -1.0, 1.0]).unwrap();
        let (q, _) = environment.joints();
        let (sine, cosine) = q[2].sin_cos();
        let expected = [q[0] + 1.25 * sine, 0.0, q[1] + 1.25 * cosine];
        assert!(near(environment.torso().position, expected));
    }
}

#[test]
fn looking_changes_nothing() {
    for name in NAMES {
        let task = Task::named(name).unwrap();
        let life = |look: bool| {
            let mut environment = Environment::new(task, false);
            environment.reset(1);
            let mut seen = Vec::new();
            for _ in 0..50 {
                if look {
                    environment.capsules();
                }
                let step = environment.step(&vec![0.7; task.action_width()]).unwrap();
                seen.push((environment.observation().to_vec(), step));
            }
            seen
        };
        assert!(life(true) == life(false), "{name}");
    }
}

#[test]
fn limbs_are_what_hangs_from_the_torso() {
    // The limbs of the bodies that have shapes, in the order of these.
    let limbs = |name: &str| -> Vec<usize> {
        let task = Task::named(name).unwrap();
        let limbs = task.limbs();
        task.capsules()
            .iter()
            .map(|capsule| limbs[capsule.body])
            .collect()
    };
    assert_eq!(limbs("hopper"), [0, 1, 1, 1]);
    assert_eq!(limbs("walker2d"), [0, 1, 1, 1, 2, 2, 2]);
    assert_eq!(limbs("half-cheetah"), [0, 0, 1, 1, 1, 2, 2, 2]);
    assert_eq!(limbs("ant"), [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
}
