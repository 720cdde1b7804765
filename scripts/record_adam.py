"""Records a hundred steps of PyTorch's Adam, with and without gradient clipping, for the tests of stages/nn.

    python scripts/record_adam.py > stages/nn/tests/adam.json

Needs torch 2.11.0; runs on the processor.
"""

import json

import torch
from torch import nn

WIDTHS, ROWS, STEPS = (4, 8, 6, 3), 16, 100


def record(seed: int, activation: str, learning_rate: float, clip: float | None) -> dict:
    torch.manual_seed(seed)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [nn.Linear(inputs, outputs), {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]()]
    network = nn.Sequential(*layers[:-1])
    inputs = torch.randn(ROWS, WIDTHS[0])
    targets = torch.rand(ROWS, WIDTHS[-1]) * 2 - 1

    def values() -> list[list[float]]:
        return [parameter.detach().flatten().tolist() for parameter in network.parameters()]

    initial, first, norms = values(), None, []
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    for _ in range(STEPS):
        loss = nn.functional.mse_loss(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), clip if clip is not None else float("inf"))
        optimizer.step()
        norms.append(norm.item())
        first = first or values()
    return {
        "learning_rate": learning_rate,
        "clip": clip,
        "activation": activation,
        "inputs": inputs.flatten().tolist(),
        "targets": targets.flatten().tolist(),
        "initial": initial,
        "norms": norms,
        "first": first,
        "last": values(),
    }


def main() -> None:
    torch.set_num_threads(1)
    runs = [record(1, "relu", 7.5e-4, 0.1), record(2, "tanh", 1e-3, None), record(3, "relu", 1e-3, None)]

    def rounded(value: object) -> object:
        # Nine significant digits give back the same single.
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return value

    print(json.dumps([{key: rounded(value) for key, value in run.items()} for run in runs]))


if __name__ == "__main__":
    main()
