//! Worlds against closed forms, and against each other.

use provenir_bullet_sys::{Base, Body, InvalidRobot, Joint, Limits, Link, Robot, STEP, Shape, World};

/// A mass on a string without the string: one body that slides along z from a height, massless base at the origin.
fn falling(height: f64) -> Robot {
    Robot {
        base: Base {
            position: [0.0, 0.0, height],
            mass: 0.0,
            inertia: [0.0; 3],
            friction: 0.5,
            shapes: Vec::new(),
        },
        links: vec![Link {
            parent: None,
            joint: Joint::Prismatic {
                axis: [0.0, 0.0, 1.0],
            },
            pivot: [0.0; 3],
            center: [0.0; 3],
            mass: 2.0,
            inertia: [0.008; 3],
            friction: 0.8,
            shapes: vec![Shape::Sphere { radius: 0.1 }],
        }],
    }
}

/// The same with a revolute joint about y and the body at 1 m below it.
fn pendulum() -> Robot {
    let mut robot = falling(5.0);
    robot.links[0].joint = Joint::Revolute {
        axis: [0.0, 1.0, 0.0],
        limits: None,
    };
    robot.links[0].center = [0.0, 0.0, -1.0];
    robot
}

fn state(world: &World) -> (f64, f64) {
    let (mut q, mut qdot) = ([0.0], [0.0]);
    world.joints(&mut q, &mut qdot);
    (q[0], qdot[0])
}

#[test]
fn a_body_falls_by_gravity_and_comes_to_rest_on_the_ground() {
    let mut world = World::new(&falling(3.0)).unwrap();
    for _ in 0..10 {
        world.step(&[0.0]);
    }
    let time = 10.0 * STEP;
    let (q, qdot) = state(&world);
    // Semi-implicit Euler of 0.004125 s, and a damping of 0.04 per second, explain the tolerances.
    assert!((qdot + 9.8 * time).abs() < 0.01 * 9.8 * time, "{qdot} m/s");
    assert!(
        (q + 0.5 * 9.8 * time * time).abs() < 0.04 * 0.5 * 9.8 * time * time,
        "{q} m"
    );
    let mut touching = [0];
    world.contacts(&mut touching);
    assert_eq!(touching, [0]);
    for _ in 0..300 {
        world.step(&[0.0]);
    }
    let height = world.pose(Body::Link(0)).position[2];
    assert!(
        (height - 0.1).abs() < 1e-3,
        "it rests at {height} m, not at its radius"
    );
    assert!(world.velocity(Body::Link(0))[2].abs() < 1e-2);
    world.contacts(&mut touching);
    assert_eq!(touching, [1]);
}

#[test]
fn a_force_that_balances_gravity_holds_the_body() {
    let mut world = World::new(&falling(3.0)).unwrap();
    for _ in 0..20 {
        world.step(&[2.0 * 9.8]);
    }
    let (q, qdot) = state(&world);
    assert!(q.abs() < 1e-12 && qdot.abs() < 1e-12, "{q} m, {qdot} m/s");
}

#[test]
fn a_small_pendulum_swings_with_its_period() {
    let mut world = World::new(&pendulum()).unwrap();
    world.reset(&[0.05]);
    let mut crossings = Vec::new();
    let mut before = state(&world).0;
    for step in 1..400 {
        world.step(&[0.0]);
        let now = state(&world).0;
        if before > 0.0 && now <= 0.0 {
            crossings.push((f64::from(step) - now / (now - before)) * STEP);
        }
        before = now;
    }
    let periods = (crossings.len() - 1) as f64;
    let period = (crossings[crossings.len() - 1] - crossings[0]) / periods;
    // I = m l² + I_body.
    let expected = 2.0 * std::f64::consts::PI * ((2.0 + 0.008) / (2.0 * 9.8_f64)).sqrt();
    assert!(
        (period - expected).abs() < 0.005 * expected,
        "{period} s, not {expected} s"
    );
}

#[test]
fn a_limit_holds() {
    let mut robot = pendulum();
    robot.links[0].joint = Joint::Revolute {
        axis: [0.0, 1.0, 0.0],
        limits: Some(Limits {
            lower: -0.2,
            upper: 0.2,
        }),
    };
    let mut world = World::new(&robot).unwrap();
    for _ in 0..200 {
        world.step(&[15.0]);
    }
    let (q, _) = state(&world);
    assert!((q - 0.2).abs() < 0.01, "{q} rad");
}

#[test]
fn after_a_reset_everything_is_as_in_a_new_world() {
    let trajectory = |world: &mut World| {
        world.reset(&[0.05]);
        (0..120)
            .map(|step| {
                world.step(&[f64::from(step % 7) - 20.0]);
                state(world)
            })
            .map(|(q, qdot)| (q.to_bits(), qdot.to_bits()))
            .collect::<Vec<_>>()
    };
    let mut world = World::new(&falling(0.5)).unwrap();
    let first = trajectory(&mut world);
    // Left in contact with the ground.
    assert_eq!(trajectory(&mut world), first);
    let others = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| trajectory(&mut World::new(&falling(0.5)).unwrap())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn robots_that_bullet_would_trip_over_are_refused() {
    let refused = |change: fn(&mut Robot)| {
        let mut robot = falling(1.0);
        change(&mut robot);
        World::new(&robot).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(|robot| robot.links.clear()), InvalidRobot::LinkCount(0));
    assert_eq!(
        refused(|robot| robot.links[0].parent = Some(0)),
        InvalidRobot::Parent { link: 0, parent: 0 }
    );
    assert_eq!(
        refused(|robot| robot.links[0].mass = f64::NAN).to_string(),
        "link 0, mass: not finite, or out of range"
    );
    assert_eq!(
        refused(|robot| robot.base.inertia[1] = -1.0).to_string(),
        "the base, inertia: not finite, or out of range"
    );
    assert_eq!(
        refused(|robot| robot.links[0].joint = Joint::Prismatic { axis: [0.0; 3] }).to_string(),
        "link 0, axis: not finite, or out of range"
    );
    let limits = |robot: &mut Robot| {
        let limits = Some(Limits {
            lower: 1.0,
            upper: -1.0,
        });
        robot.links[0].joint = Joint::Revolute {
            axis: [0.0, 1.0, 0.0],
            limits,
        };
    };
    assert_eq!(
        refused(limits).to_string(),
        "link 0, limits: not finite, or out of range"
    );
    assert_eq!(
        refused(|robot| robot.links[0].shapes.push(Shape::Sphere { radius: 1.0 })),
        InvalidRobot::Sphere("link 0".into())
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_dropped_world_gives_everything_back() {
    let resident = || {
        let pages: usize = fs_err::read_to_string("/proc/self/statm")
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        pages * 4096
    };
    let live = |count: usize| {
        for _ in 0..count {
            let mut world = World::new(&falling(0.12)).unwrap();
            for _ in 0..20 {
                world.step(&[0.0]);
            }
        }
    };
    live(50);
    let before = resident();
    live(1000);
    let grown = resident().saturating_sub(before);
    // A world takes about 0.2 MB; other tests, which run beside this one, hold a few.
    assert!(grown < 8 << 20, "1000 worlds left {grown} bytes behind");
}
