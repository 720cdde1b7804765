"""Writes agents with the libraries that they come from, and the actions that those libraries take.

    scripts/setup.sh torch
    .deps/torch/bin/python scripts/record_agents.py FOLDER               # for `make oracle`: every combination, whole archives
    .deps/torch/bin/python scripts/record_agents.py --fixtures FOLDER    # for `make test`: few and small

Agents of PPO, A2C, SAC, TQC, TD3 and DDPG, with and without gSDE, VecNormalize statistics and the time feature, with several
activations and depths. Nothing is trained: weights and statistics are random.

FOLDER gets NAME.zip (`model.save`), NAME.pkl (`VecNormalize.save`), `agents.json` (observations, and the actions that
`predict(deterministic=True)` gives for them) and `foreign.safetensors`, a policy written with the `safetensors` library.

In fixtures, what readers must never look at (pickled payloads, documentation, optimisers) is left out to keep them small.
"""

import argparse
import itertools
import json
import pathlib
import pickle
import zipfile

import gymnasium
import numpy
import torch
from safetensors.numpy import save_file
from sb3_contrib import TQC
from sb3_contrib.common.wrappers import TimeFeatureWrapper
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

ALGORITHMS = {"ppo": PPO, "a2c": A2C, "sac": SAC, "tqc": TQC, "td3": TD3, "ddpg": DDPG}
WITH_SDE = ("ppo", "a2c", "sac", "tqc")
ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}
EPISODE = 1000


class Still(gymnasium.Env):
    """A task of which only the spaces matter."""

    def __init__(self, width, low, high):
        self.observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (width,), numpy.float32)
        self.action_space = gymnasium.spaces.Box(numpy.float32(low), numpy.float32(high), dtype=numpy.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.zeros(self.observation_space.shape, numpy.float32), {}

    def step(self, action):
        return numpy.zeros(self.observation_space.shape, numpy.float32), 0.0, False, False, {}


def agent(
    algorithm,
    gsde=False,
    normalize=False,
    time_feature=False,
    activation=None,
    layers=None,
    width=5,
    low=(-0.5, -0.25, -1.0),
    high=(0.5, 0.375, 0.125),
    clip=10.0,
    protocol=None,
    gain=1.0,
    **policy_arguments,
):
    """What to record, with all that was left out."""
    return locals()


def every():
    """All combinations, and the settings that change what the weights mean."""
    shapes = [(None, None), ("relu", []), ("tanh", [400, 300]), ("relu", [64, 64, 64])]
    for algorithm, gsde, normalize, time_feature, (activation, layers) in itertools.product(
        ALGORITHMS, (False, True), (False, True), (False, True), shapes
    ):
        if gsde and algorithm not in WITH_SDE:
            continue
        words = [algorithm, *["gsde"] * gsde, *["normalized"] * normalize, *["time"] * time_feature]
        if layers is not None:
            words += [activation, str(len(layers))]
        yield "-".join(words), agent(algorithm, gsde, normalize, time_feature, activation, layers)
    for algorithm in ("sac", "tqc"):
        for bound in (0, 0.25, 3):
            yield f"{algorithm}-clip-{bound}", agent(algorithm, gsde=True, layers=[8], gain=6.0, clip_mean=bound)
        yield f"{algorithm}-saturated", agent(algorithm, gsde=True, layers=[8], gain=6.0)
    yield "ppo-squashed", agent("ppo", gsde=True, normalize=True, squash_output=True)
    yield "a2c-protocol-2", agent("a2c", normalize=True, protocol=2)
    yield "td3-protocol-5", agent("td3", normalize=True, protocol=5, clip=1.0)
    yield "ddpg-many", agent("ddpg", width=100, low=[-0.4] * 17, high=[0.4] * 17)


def few():
    """Small ones; those of the widths of Hopper are for `collect`."""
    box = {"low": (-1.0, -1.0), "high": (1.0, 1.0)}
    net = {"layers": [8, 6]}
    yield "ppo", agent("ppo", normalize=True, clip=2.0, gain=3.0, **net, **box)
    yield "ppo-relu-gsde", agent("ppo", gsde=True, normalize=True, protocol=5, activation="relu", **net, **box)
    yield "a2c", agent("a2c", normalize=True, protocol=2, activation="tanh", **net)
    yield "squashed", agent("ppo", gsde=True, normalize=True, squash_output=True, **net)
    yield "plain", agent("ppo", layers=[])
    yield "sac", agent("sac", **net)
    yield "sac-gsde", agent("sac", gsde=True, normalize=True, gain=4.0, **net)
    yield "sac-deep-tanh", agent("sac", time_feature=True, activation="tanh", layers=[6, 5, 4])
    yield "tqc", agent("tqc", normalize=True, layers=[6])
    yield "tqc-gsde", agent("tqc", gsde=True, layers=[6], clip_mean=0.25)
    yield "td3", agent("td3", normalize=True, **net)
    yield "td3-shallow", agent("td3", layers=[])
    yield "ddpg", agent("ddpg", activation="tanh", **net)
    hopper = {"width": 15, "low": [-1.0] * 3, "high": [1.0] * 3, "layers": [4]}
    yield "hopper", agent("sac", gsde=True, **hopper)
    yield "hopper-time", agent("sac", gsde=True, normalize=True, time_feature=True, **hopper)


def build(algorithm, gsde, normalize, time_feature, activation, layers, width, low, high, clip, policy_arguments, **_):
    def environment():
        still = Still(width, low, high)
        return TimeFeatureWrapper(still, max_steps=EPISODE) if time_feature else still

    environments = DummyVecEnv([environment])
    if normalize:
        environments = VecNormalize(environments, clip_obs=clip, training=False)
    arguments = dict(policy_arguments)
    if layers is not None:
        arguments["net_arch"] = layers
    if activation is not None:
        arguments["activation_fn"] = ACTIVATIONS[activation]
    settings = {"use_sde": gsde} if algorithm in WITH_SDE else {}
    if algorithm not in ("ppo", "a2c"):
        settings["buffer_size"] = 1
    return ALGORITHMS[algorithm]("MlpPolicy", environments, device="cpu", policy_kwargs=arguments, **settings)


def disturb(model, random, gain=1.0):
    """Random weights, by default as large as initial ones; random statistics, of which one observation never varied."""
    with torch.no_grad():
        for parameter in model.policy.parameters():
            shape = tuple(parameter.shape)
            scale = gain * (0.5 / numpy.sqrt(shape[-1]) if len(shape) > 1 else 0.25)
            parameter.copy_(torch.from_numpy((scale * random.normal(size=shape)).astype(numpy.float32)))
    environments = model.get_vec_normalize_env()
    if environments is not None:
        width = len(environments.obs_rms.mean)
        environments.obs_rms.mean = random.normal(size=width)
        environments.obs_rms.var = numpy.exp(random.normal(size=width))
        environments.obs_rms.mean[1], environments.obs_rms.var[1] = 0.5, 0.0
        # As after training: the spaces' random generators are pickled, too.
        environments.action_space.seed(1)


def slim(path):
    """Takes pickled payloads, documentation and optimisers out of an archive."""
    kept = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if "optimizer" not in name and name not in ("system_info.txt", "pytorch_variables.pth"):
                kept[name] = archive.read(name)
    data = json.loads(kept["data"])
    for value in data.values():
        if isinstance(value, dict) and ":serialized:" in value:
            value[":serialized:"] = ""
            for key in list(value):
                # Addresses would differ from one recording to the next.
                if key.startswith("__") and key != "__module__" or " at 0x" in str(value[key]):
                    del value[key]
    kept["data"] = json.dumps(data, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def observe(random, count, width, environments):
    """Observations around their mean; the one that never varied is elsewhere in one of four, and is clipped there."""
    observations = random.normal(size=(count, width))
    if environments is not None:
        observations = environments.obs_rms.mean + observations * numpy.sqrt(environments.obs_rms.var)
        observations[::4, 1] += 0.1
    return observations.astype(numpy.float32)


def record(folder, name, settings, count, small):
    random = numpy.random.default_rng(list(name.encode()))
    model = build(**settings)
    disturb(model, random, settings["gain"])
    model.save(folder / f"{name}.zip")
    if small:
        slim(folder / f"{name}.zip")
    environments = model.get_vec_normalize_env()
    observations = observe(random, count, model.observation_space.shape[0], environments)
    if settings["time_feature"]:
        observations[:, -1] = 1 - numpy.arange(count) / EPISODE
    seen = observations
    if environments is not None:
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(environments, settings["protocol"]))
        seen = environments.normalize_obs(observations)
    actions, _ = model.predict(seen, deterministic=True)
    return {
        "method": settings["algorithm"],
        "statistics": environments is not None,
        "time_feature": settings["time_feature"],
        "observations": observations.tolist(),
        "actions": actions.tolist(),
    }


def foreign(path):
    """A policy by the `safetensors` library: TD3's actor with statistics in single precision."""
    random = numpy.random.default_rng(1)
    model = build(**agent("td3", layers=[4]))
    disturb(model, random)
    weights = {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}
    tensors = {
        "layers.0.weight": weights["actor.mu.0.weight"],
        "layers.0.bias": weights["actor.mu.0.bias"],
        "layers.1.weight": weights["actor.mu.2.weight"],
        "layers.1.bias": weights["actor.mu.2.bias"],
        "action.low": model.action_space.low,
        "action.high": model.action_space.high,
        "observation.mean": random.normal(size=5).astype(numpy.float32),
        "observation.scale": numpy.exp(random.normal(size=5)).astype(numpy.float32),
    }
    metadata = {
        "environment": "test",
        "time_feature": "false",
        "method": "td3",
        "activation": "relu",
        "action_map": "tanh",
        "observation_clip": "2.5",
        "note": "written by hand",
    }
    save_file(tensors, path, metadata)
    path.chmod(0o644)
    observations = (3 * random.normal(size=(8, 5))).astype(numpy.float32)
    standardised = (observations - tensors["observation.mean"]) / tensors["observation.scale"]
    actions, _ = model.predict(numpy.clip(standardised, -2.5, 2.5), deterministic=True)
    return {
        "method": "td3",
        "statistics": False,
        "time_feature": False,
        "observations": observations.tolist(),
        "actions": actions.tolist(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fixtures", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    agents = dict(few() if arguments.fixtures else every())
    count = 8 if arguments.fixtures else 100
    recorded = {
        name: record(arguments.folder, name, settings, count, arguments.fixtures) for name, settings in agents.items()
    }
    with open(arguments.folder / "agents.json", "w") as file:
        json.dump(recorded, file)
        file.write("\n")
    if arguments.fixtures:
        with open(arguments.folder / "foreign.json", "w") as file:
            json.dump(foreign(arguments.folder / "foreign.safetensors"), file)
            file.write("\n")


if __name__ == "__main__":
    main()
