#!/usr/bin/env python3
"""Environment steps per second of processor time: ours and PyBullet's, in interleaved rounds.

    bench_pybullet.py [hopper walker2d half-cheetah ant] [--rounds 5] [--steps 10000]

Both take uniform actions and reset where an episode ends. What it needs is said in `pybullet_reference.py`.
"""

import argparse
import statistics
import subprocess
import time

import numpy as np

from pybullet_reference import ENVIRONMENTS, make


def pybullet_rate(environment, steps, generator):
    low, high = environment.action_space.low, environment.action_space.high
    environment.reset()
    length = 0
    start = time.process_time()
    for _ in range(steps):
        _, _, done, _ = environment.step(generator.uniform(low, high).astype(np.float32))
        length += 1
        if done or length == 1000:
            environment.reset()
            length = 0
    return steps / (time.process_time() - start)


def our_rate(name, steps):
    command = ["cargo", "bench", "--quiet", "--profile", "release", "--workspace", "--bench", "steps", "--", name, str(steps)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def compare(name, rounds, steps):
    generator = np.random.default_rng(0)
    environment = make(name, 0)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(our_rate(name, 4 * steps))
        theirs.append(pybullet_rate(environment, steps, generator))
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(f"{name}: {ours:.0f} steps per processor second, PyBullet {theirs:.0f}: {ours / theirs:.1f} times", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # argparse holds an empty list against the choices.
    parser.add_argument("environments", nargs="*", metavar="environment", help=", ".join(ENVIRONMENTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10_000)
    arguments = parser.parse_args()
    unknown = set(arguments.environments) - set(ENVIRONMENTS)
    if unknown:
        parser.error(f"no such environment: {', '.join(sorted(unknown))}")
    for name in arguments.environments or ENVIRONMENTS:
        compare(name, arguments.rounds, arguments.steps)


if __name__ == "__main__":
    main()
