#!/usr/bin/env python3
"""Records trajectories of PyBullet 3.2.7's locomotion environments as CSV.

    record_pybullet.py hopper stages/sim/tests/fixtures/hopper.csv
    record_pybullet.py ant stages/sim/tests/fixtures/ant.csv --steps 50
    record_pybullet.py hopper long.csv --episodes 20 --steps 1000 --seed 7

The first line makes Hopper's fixture of the tests, the second one of those of the others; `cargo run --release -p provenir-sim --example compare_pybullet -- long.csv`
compares any other recording. What it needs is said in `pybullet_reference.py`.

One row a step: what was done and what came of it, stepping on past the ends of episodes; step 0 is the reset. Episodes follow
each other in one environment object. Actions are single precision and cycle through uniform ±1, sinusoids, uniform ±2 (out
of range) and uniform ±0.3. Numbers are written so that they read back to the bit. Joint positions and velocities (`q4`:
of link 4) are given up to step 10, or to the step that `--joint-steps` says.
"""

import argparse
import csv

import numpy as np

from pybullet_reference import ENVIRONMENTS, make


def actions(episode, steps, width, generator):
    mode = episode % 4
    if mode == 1:
        phase, rate = generator.uniform(0, 2 * np.pi, width), generator.uniform(0.05, 0.4, width)
        wave = 0.9 * np.sin(np.arange(steps)[:, None] * rate + phase)
        return wave.astype(np.float32)
    scale = {0: 1.0, 2: 2.0, 3: 0.3}[mode]
    return generator.uniform(-scale, scale, (steps, width)).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", choices=ENVIRONMENTS)
    parser.add_argument("file")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--joint-steps", type=int, default=10)
    arguments = parser.parse_args()

    generator = np.random.default_rng(arguments.seed)
    environment = make(arguments.environment, arguments.seed)
    client, robot = environment._p, environment.robot.objects[0]
    moving = [i for i in range(client.getNumJoints(robot)) if client.getJointInfo(robot, i)[2] != client.JOINT_FIXED]

    with open(arguments.file, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        width = environment.action_space.shape[0]
        observations = environment.observation_space.shape[0]
        writer.writerow(
            ["episode", "step"]
            + [f"a{i}" for i in range(width)]
            + [f"o{i}" for i in range(observations)]
            + ["reward", "terminated"]
            + [f"q{i}" for i in moving]
            + [f"v{i}" for i in moving]
        )

        def row(episode, step, action, observation, reward, terminated):
            joints = [""] * (2 * len(moving))
            if step <= arguments.joint_steps:
                states = [client.getJointState(robot, i) for i in moving]
                joints = [repr(state[part]) for part in (0, 1) for state in states]
            assert observation.dtype == np.float32
            writer.writerow([episode, step, *action, *map(str, observation), reward, terminated, *joints])

        for episode in range(arguments.episodes):
            nothing = [""] * width
            row(episode, 0, nothing, environment.reset(), "", "")
            for step, action in enumerate(actions(episode, arguments.steps, width, generator), start=1):
                observation, reward, terminated, _ = environment.step(action)
                row(episode, step, map(str, action), observation, repr(float(reward)), int(terminated))


if __name__ == "__main__":
    main()
