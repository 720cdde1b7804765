"""Robust cloning written a second time, in PyTorch and from the formulas alone: an oracle for whole trainings of `train`.

    scripts/setup.sh torch && scripts/setup.sh test
    PYTHONPATH=$(echo .deps/test/lib/python3.*/site-packages) .deps/torch/bin/python scripts/rbc_reference.py \
        METHOD TRAIN.parquet CLEAN.parquet [--out POLICY.safetensors] [settings]

METHOD is `bc`, `min-max`, `direct`, `noisy-bc` (one network) or `noisy-bcnd` (disjoint parts, the mean of densities and of
actions). TRAIN and CLEAN are demonstrations (`provenir path 'corrupted[…]'`); the squared error on the actions of CLEAN,
after the actions were clipped, is what to compare. Random numbers differ from those of `train`, so that numbers agree
within the spread over seeds, not in their digits; single steps are held against LibTorch's recorder by the tests of
stages/train.

POLICY can be rolled out: `collect` takes it as `expert`.

Minibatches, steps an epoch, schedule, clipping and standardisation are those that `train` documents; sources: Liu, Tang, Li
and Luo (2022), Definition 3.1 and Algorithm 1; Sasaki and Yamashina (2021).
"""

import argparse
import math

import pyarrow.parquet
import torch
from torch import nn


def read(path):
    table = pyarrow.parquet.read_table(path)
    columns = [torch.tensor(table[name].to_pylist(), dtype=torch.float32) for name in ("observation", "action")]
    return (*columns, table.schema.metadata)


def network(inputs, width, outputs):
    layers = []
    for size in [inputs] + [width] * 2:
        layers += [nn.Linear(size, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def errors(policy, observations, actions):
    """Squared error of each sample, averaged over components."""
    return (policy(observations) - actions).square().mean(1)


class Learner:
    """A network with its own Adam, whose gradient is clipped and whose step size decays linearly over `steps`."""

    def __init__(self, make, options, steps):
        self.policy, self.options, self.steps, self.done = make(), options, steps, 0
        self.adam = torch.optim.Adam(self.policy.parameters(), lr=options.learning_rate)

    def step(self, loss):
        progress = self.done / max(self.steps - 1, 1)
        last = 1.0 if self.options.schedule == "constant" else 0.02
        for group in self.adam.param_groups:
            group["lr"] = self.options.learning_rate * (1 - (1 - last) * progress)
        self.done += 1
        self.adam.zero_grad()
        loss.backward()
        if self.options.gradient_clip > 0:
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.options.gradient_clip)
        self.adam.step()


def clone(make, observations, actions, weights, options, epochs, count):
    """Weighted least squares over minibatches; an epoch takes as many steps as `count` samples fill minibatches."""
    size = options.batch
    learner = Learner(make, options, epochs * math.ceil(count / size))
    for _ in range(epochs):
        order = torch.empty(0, dtype=torch.long)
        while len(order) < count:
            order = torch.cat([order, torch.randperm(len(observations))])
        for batch in order[:count].split(size):
            loss = (weights[batch] * errors(learner.policy, observations[batch], actions[batch])).mean()
            learner.step(loss)
    return learner.policy


def robust(make, observations, actions, options, with_challenger):
    """Algorithm 1 on a chunk: the blocks around the median of ℓ(π) − ℓ(π′), or of ℓ(π), give the gradient of both."""
    count = len(observations)
    steps = options.epochs * math.ceil(count / options.batch)
    players = [Learner(make, options, steps) for _ in range(2 if with_challenger else 1)]
    blocks = options.chunk // options.block
    window = max(1, round(options.window * blocks))
    first = (blocks - window) // 2
    for _ in range(steps):
        chunk = torch.randperm(count)[: blocks * options.block]
        with torch.no_grad():
            values = [errors(player.policy, observations[chunk], actions[chunk]) for player in players]
            value = values[0] - values[1] if with_challenger else values[0]
            ranked = value.view(blocks, options.block).mean(1).argsort()
            chosen = chunk.view(blocks, options.block)[ranked[first : first + window]].flatten()
        for player in players:
            player.step(errors(player.policy, observations[chosen], actions[chosen]).mean())
    return players[0].policy


def reweighted(make, observations, actions, options, members):
    """Rounds of weighted least squares; weights are the densities under the policies of the round before."""
    count, width = len(actions), actions.shape[1]
    weights = torch.ones(count)
    parts = [torch.arange(count)]
    if members > 1:
        parts = torch.randperm(count).tensor_split(members)
    for number in range(options.rounds):
        start, end = (options.epochs * edge // options.rounds for edge in (number, number + 1))
        policies = [
            clone(make, observations[part], actions[part], weights[part], options, end - start, count) for part in parts
        ]
        logarithms = []
        for policy, part in zip(policies, parts):
            with torch.no_grad():
                error = errors(policy, observations, actions).double()
            weight = weights[part].double()
            sigma = max(((weight * error[part]).sum() / weight.sum()).sqrt().item(), options.sigma_floor)
            logarithms.append(-width * math.log(sigma) - width * error / (2 * sigma**2))
        density = torch.stack(logarithms).logsumexp(0)
        weights = (density - density.max()).exp()
        effective = (weights.sum() ** 2 / weights.square().sum()).item()
        weights = (weights / weights.mean()).float()
        print(f"round {number + 1}: sigma {sigma:.4f}, {effective:.0f} effective samples for the next", flush=True)
    return policies


def save(path, policies, mean, scale, metadata):
    from safetensors.torch import save_file

    if len(policies) > 1:
        raise SystemExit("a committee is not written; leave out --out")
    tensors = {"observation.mean": mean, "observation.scale": scale}
    for index, layer in enumerate(module for module in policies[0] if isinstance(module, nn.Linear)):
        tensors[f"layers.{index}.weight"], tensors[f"layers.{index}.bias"] = layer.weight.data, layer.bias.data
    outputs = policies[0][-1].out_features
    tensors["action.low"], tensors["action.high"] = -torch.ones(outputs), torch.ones(outputs)
    about = {name: metadata[name.encode()].decode() for name in ("environment", "time_feature")}
    save_file(tensors, path, about | {"method": "reference", "activation": "relu", "action_map": "clip"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=["bc", "min-max", "direct", "noisy-bc", "noisy-bcnd"])
    parser.add_argument("train")
    parser.add_argument("clean")
    parser.add_argument("--out")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=7.5e-4)
    parser.add_argument("--schedule", choices=["linear", "constant"], default="linear")
    parser.add_argument("--gradient-clip", type=float, default=0.1)
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=960)
    parser.add_argument("--window", type=float, default=0.6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--sigma-floor", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)

    observations, actions, metadata = read(options.train)
    clean_observations, clean_actions, _ = read(options.clean)
    mean = observations.double().mean(0)
    scale = observations.double().std(0, correction=0).clamp(min=1e-3)
    standardised = ((observations - mean) / scale).float()

    def make():
        return network(observations.shape[1], options.width, actions.shape[1])

    if options.method == "bc":
        ones = torch.ones(len(actions))
        policies = [clone(make, standardised, actions, ones, options, options.epochs, len(actions))]
    elif options.method in ("min-max", "direct"):
        policies = [robust(make, standardised, actions, options, options.method == "min-max")]
    else:
        members = options.members if options.method == "noisy-bcnd" else 1
        policies = reweighted(make, standardised, actions, options, members)
    with torch.no_grad():
        inputs = ((clean_observations - mean) / scale).float()
        output = torch.stack([policy(inputs) for policy in policies]).mean(0)
    raw = (output - clean_actions).square().mean().item()
    clipped = (output.clamp(-1, 1) - clean_actions).square().mean().item()
    print(f"{options.method}: squared error on clean actions {raw:.5f}, after clipping {clipped:.5f}")
    if options.out:
        save(options.out, policies, mean, scale, metadata)


if __name__ == "__main__":
    main()
