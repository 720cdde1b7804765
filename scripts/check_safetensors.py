"""Reads policies as safetensors with the format's own library, and acts with them in double precision:

    .deps/torch/bin/python scripts/check_safetensors.py FOLDER

FOLDER is one that `record_agents.py` and then `compare_agents` filled. The actions must be those that the agents took, and the
tensors lie in the file as the library would lay them.
"""

import json
import pathlib
import sys

import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

folder = pathlib.Path(sys.argv[1])
ACTIVATIONS = {"relu": lambda x: numpy.maximum(x, 0), "tanh": numpy.tanh}


def act(tensors, metadata, observations):
    x = observations.astype(numpy.float64)
    if "observation.mean" in tensors:
        x = (x - tensors["observation.mean"]) / tensors["observation.scale"]
        clip = float(metadata.get("observation_clip", "inf"))
        x = numpy.clip(x, -clip, clip).astype(numpy.float32).astype(numpy.float64)
    layers = sum(name.endswith(".weight") for name in tensors)
    for index in range(layers):
        weight, bias = (tensors[f"layers.{index}.{part}"].astype(numpy.float64) for part in ("weight", "bias"))
        x = x @ weight.T + bias
        if index + 1 < layers:
            x = ACTIVATIONS[metadata["activation"]](x)
    low, high = tensors["action.low"], tensors["action.high"]
    if metadata["action_map"] == "clip":
        return numpy.clip(x, low, high)
    if metadata["action_map"] == "clipped-tanh":
        bound = float(metadata["action_clip"])
        x = numpy.clip(x, -bound, bound)
    return low + (numpy.tanh(x) + 1) / 2 * (high - low)


worst = 0.0
recorded = json.loads((folder / "agents.json").read_text())
for name, agent in recorded.items():
    path = folder / f"{name}.safetensors"
    tensors = load_file(path)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    actions = act(tensors, metadata, numpy.array(agent["observations"], numpy.float32))
    worst = max(worst, numpy.abs(actions - numpy.array(agent["actions"])).max())
    # The library writes the texts in an order that changes from time to time; the tensors' bytes are the same.
    again = folder / "again.safetensors"
    save_file(tensors, again, metadata)
    data = [content[8 + int.from_bytes(content[:8], "little") :] for content in (path.read_bytes(), again.read_bytes())]
    if data[0] != data[1]:
        sys.exit(f"{name}: the library orders the tensors otherwise")
print(f"{len(recorded)} policies as safetensors: the greatest difference is {worst:.2e}")
if not worst <= 1e-6:
    sys.exit("actions differ by more than 1e-6")
