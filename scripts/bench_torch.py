"""One behavioural-cloning step in PyTorch eager mode, timed: the yardstick of the example `step` of stages/train.

The workload is the same on both sides: a ReLU network of three hidden layers, minibatches of 256 gathered from
60,000 samples of 16 observations and 3 actions by a random permutation, mean squared error, gradient norm clipped to
0.1, Adam. One thread. Prints `width`, milliseconds a step (median and least over repeats of 100 steps).

    python scripts/bench_torch.py [--device cpu] [--widths 64,256,500] [--repeats 10]

With `--policies K --samples N --epochs E` it trains K networks of the first width one after another, for E epochs of N samples
each, and prints the seconds that this takes once PyTorch is loaded.

Needs torch 2.11.0.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

OBSERVATION, ACTION, SAMPLES, BATCH, STEPS = 16, 3, 60_000, 256, 100


def demonstrations(samples: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    observations = torch.randn(samples, OBSERVATION, device=device)
    return observations, torch.rand(samples, ACTION, device=device) * 2 - 1


def learner(
    observations: torch.Tensor, actions: torch.Tensor, width: int
) -> Callable[[torch.Tensor], None]:
    """A fresh network and its optimiser, as what takes a step along the samples that it is given."""
    network = nn.Sequential(
        nn.Linear(OBSERVATION, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, ACTION),
    ).to(observations.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=7.5e-4)

    def step(rows: torch.Tensor) -> None:
        loss = nn.functional.mse_loss(network(observations[rows]), actions[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step()

    return step


def measure(width: int, repeats: int, device: torch.device) -> list[float]:
    """Milliseconds a step of repeats of `STEPS` steps, from the least to the most."""
    step = learner(*demonstrations(SAMPLES, device), width)

    def steps() -> None:
        order = torch.randperm(SAMPLES).to(device)
        for number in range(STEPS):
            step(order[number * BATCH : (number + 1) * BATCH])
        if device.type == "cuda":
            torch.cuda.synchronize()

    steps()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        steps()
        times.append((time.perf_counter() - start) / STEPS * 1e3)
    return sorted(times)


def train(policies: int, samples: int, epochs: int, width: int, device: torch.device) -> float:
    """Seconds that training so many networks takes, one after another."""
    observations, actions = demonstrations(samples, device)
    learner(observations, actions, width)(torch.arange(BATCH, device=device))
    start = time.perf_counter()
    for _ in range(policies):
        step = learner(observations, actions, width)
        for _ in range(epochs):
            for rows in torch.randperm(samples).to(device).split(BATCH):
                step(rows)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--widths", default="64,256,500")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--policies", type=int)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    device = torch.device(arguments.device)
    widths = [int(width) for width in arguments.widths.split(",")]
    if arguments.policies:
        print(f"{train(arguments.policies, arguments.samples, arguments.epochs, widths[0], device):.2f}")
        return
    for width in widths:
        times = measure(width, arguments.repeats, device)
        print(f"torch bc 3x{width}: {times[len(times) // 2]:.3f} ms/step (least {times[0]:.3f})")


if __name__ == "__main__":
    main()
