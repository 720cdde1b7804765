#!/usr/bin/env python3
"""Updates per second of processor time: our learner's and Stable-Baselines3's, in interleaved rounds.

    bench_sac.py [--rounds 3] [--updates 400]

The workload is the same on both sides: batches gathered at random from 50,000 transitions, two critics and their targets,
policy, learned temperature, Adam; one thread. Of ours it also times critics normalised as in CrossQ (policy delay 3). Needs
what `scripts/setup.sh torch` installs, and `cargo build --release --workspace --example updates`.
"""

import argparse
import statistics
import subprocess
import time

import gymnasium
import numpy as np
import torch
from sb3_contrib import TQC
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger

TRANSITIONS = 50_000
HOPPER, ANT = (15, 3), (28, 8)
# Algorithm, batch, widths, observation and action.
CASES = [
    ("sac", 256, (400, 300), HOPPER),
    ("sac", 256, (400, 300), ANT),
    ("sac", 256, (256, 256), HOPPER),
    ("tqc", 128, (256, 256), HOPPER),
    ("tqc", 128, (256, 256), ANT),
    ("crossq-tqc", 128, (256, 256), ANT),
]


class Shapes(gymnasium.Env):
    """Nothing but the widths of observations and actions."""

    def __init__(self, observation, action):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (observation,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (action,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action):
        raise NotImplementedError("nothing is played here")


def agent(algorithm, batch, widths, observation, action):
    settings = dict(
        learning_rate=3e-4,
        buffer_size=TRANSITIONS,
        batch_size=batch,
        policy_kwargs=dict(net_arch=list(widths)),
        device="cpu",
        seed=0,
    )
    made = (TQC if algorithm == "tqc" else SAC)("MlpPolicy", Shapes(observation, action), **settings)
    made.set_logger(Logger(None, []))
    generator = np.random.default_rng(0)
    rows = lambda width: generator.uniform(-1, 1, (TRANSITIONS, 1, width)).astype(np.float32)
    buffer = made.replay_buffer
    buffer.observations[:], buffer.next_observations[:] = rows(observation), rows(observation)
    buffer.actions[:], buffer.rewards[:] = rows(action), rows(1)[:, :, 0]
    buffer.full = True
    return made


def our_rate(algorithm, batch, widths, observation, action, updates):
    command = ["target/release/examples/updates"]
    command += map(str, [algorithm, batch, ",".join(map(str, widths)), observation, action, updates])
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def their_rate(made, batch, updates):
    start = time.process_time()
    made.train(gradient_steps=updates, batch_size=batch)
    return updates / (time.process_time() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=400)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for algorithm, batch, widths, (observation, action) in CASES:
        case = (algorithm, batch, widths, observation, action)
        made = None if algorithm.startswith("crossq") else agent(*case)
        if made:
            their_rate(made, batch, 50)
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(our_rate(*case, arguments.updates))
            if made:
                theirs.append(their_rate(made, batch, arguments.updates))
        name = f"{algorithm}, batch {batch}, {list(widths)}, {observation} + {action}"
        line = f"{name:36} {statistics.median(ours):6.1f} updates per processor second"
        if made:
            ratio = statistics.median(ours) / statistics.median(theirs)
            line += f", Stable-Baselines3 {statistics.median(theirs):6.1f}: {ratio:.2f} times"
        print(line, flush=True)


if __name__ == "__main__":
    main()
