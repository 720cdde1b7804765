"""One behavioural-cloning step in PyTorch eager mode, timed: the yardstick of the example `step` of stages/train.

The workload is the same on both sides: a ReLU network of three hidden layers, minibatches of 256 gathered from
60,000 samples of 16 observations and 3 actions by a random permutation, mean squared error, gradient norm clipped to
0.1, Adam. One thread. Prints `width`, milliseconds a step (median and least over repeats of 100 steps).

    python scripts/bench_torch.py [--device cpu] [--widths 64,256,500] [--repeats 10]

Needs torch 2.11.0.
"""

import argparse
import time

import torch
from torch import nn

OBSERVATION, ACTION, SAMPLES, BATCH, STEPS = 16, 3, 60_000, 256, 100


def measure(width: int, repeats: int, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    observations = torch.randn(SAMPLES, OBSERVATION, device=device)
    actions = torch.rand(SAMPLES, ACTION, device=device) * 2 - 1
    network = nn.Sequential(
        nn.Linear(OBSERVATION, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, ACTION),
    ).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=7.5e-4)

    def steps() -> None:
        order = torch.randperm(SAMPLES).to(device)
        for step in range(STEPS):
            rows = order[step * BATCH : (step + 1) * BATCH]
            loss = nn.functional.mse_loss(network(observations[rows]), actions[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    steps()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        steps()
        times.append((time.perf_counter() - start) / STEPS * 1e3)
    return sorted(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--widths", default="64,256,500")
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    for width in map(int, arguments.widths.split(",")):
        times = measure(width, arguments.repeats, torch.device(arguments.device))
        print(f"torch bc 3x{width}: {times[len(times) // 2]:.3f} ms/step (least {times[0]:.3f})")


if __name__ == "__main__":
    main()
