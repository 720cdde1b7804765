#!/usr/bin/env python3
"""Writes reference.in: which of a few samples are corrupted, and by what, computed without this project's code.

Needs `pip install blake3 numpy`.
"""

import pathlib
import statistics
import struct

import numpy
from blake3 import blake3

MASK = 0xFFFFFFFF
SEED, SAMPLES, WIDTH, CHOSEN = 7, range(1000, 1012), 2, 3
NOISE, SENSORS, DEAD, EPISODES = 0.5, 3, 2, 3


def philox(key, counter):
    """Philox4x32-10, after Salmon et al. (2011), section 4.3, figure 2 and table 2."""
    k, c = list(key), list(counter)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def draw(identity, position):
    words = struct.unpack("<8I", identity)
    index = position // 2
    a, b, c, d = philox(words[:2], (index & MASK, index >> 32, words[2], words[3]))
    return (a | b << 32, c | d << 32)[position % 2]


def stream(seed, name):
    data = seed.to_bytes(8, "little") + name.encode()
    return blake3(data, derive_key_context="provenir random v1 stream").digest()


def child(parent, name, index):
    data = parent + index.to_bytes(8, "little") + name.encode()
    return blake3(data, derive_key_context="provenir random v1 child").digest()


root = stream(SEED, "corrupt")
order = child(root, "order", 0)
chosen = sorted(sorted(SAMPLES, key=lambda sample: draw(order, sample))[:CHOSEN])


def clean(sample):
    number = sample % 512 / 1024
    return [number, -number]


def normal(draw):
    """The quantile at the middle of one of 2^52 intervals; Python's is Wichura's AS 241, too."""
    return statistics.NormalDist().inv_cdf(((draw >> 12) + 0.5) / 2**52)


def outlier(model, sample):
    identity = child(child(root, model, 0), "sample", sample)
    draws = [draw(identity, position) for position in range(WIDTH)]
    signs = [2.0 * (value >> 63) - 1.0 for value in draws]
    if model == "boundary":
        return signs
    if model == "boundary one sign":
        return [signs[0]] * WIDTH
    if model == "gaussian":
        return [value + NOISE * normal(draw) for value, draw in zip(clean(sample), draws)]
    return [-1.0 + 2.0 * ((value >> 11) / 2**53) for value in draws]


def below(identity, position, bound):
    """Lemire's method; that a draw is rejected is too unlikely to be met here."""
    product = draw(identity, position) * bound
    assert product % 2**64 >= bound
    return product >> 64


def choose(identity, count, chosen):
    """Fisher-Yates from the front."""
    values = list(range(count))
    for index in range(min(chosen, count - 1)):
        other = index + below(identity, index, count - index)
        values[index], values[other] = values[other], values[index]
    return values[:chosen]


dead = sorted(choose(child(root, "dead sensors", 0), SENSORS, DEAD))
episode_order = child(root, "episode order", 0)
episodes = sorted(range(EPISODES), key=lambda episode: draw(episode_order, episode))
cycle = sorted(chosen, key=lambda sample: draw(order, sample))
sources = [cycle[(cycle.index(sample) + 1) % CHOSEN] for sample in chosen]


def literal(value):
    """The shortest decimal of a single, its digits in groups of three."""
    whole, _, digits = numpy.format_float_positional(numpy.float32(value), unique=True, trim="0").partition(".")
    return f"{whole}." + "_".join(digits[start : start + 3] for start in range(0, len(digits), 3))


def rows(model):
    return "".join(f"    [{', '.join(map(literal, outlier(model, sample)))}],\n" for sample in chosen)


pathlib.Path(__file__).with_name("reference.in").write_text(
    f"const CHOSEN: [u64; {CHOSEN}] = {chosen};\n"
    + "".join(
        f"const {model.upper().replace(' ', '_')}: [[f32; {WIDTH}]; {CHOSEN}] = [\n{rows(model)}];\n"
        for model in ("boundary", "boundary one sign", "uniform", "gaussian")
    )
    + "// The sample whose action each of the chosen takes.\n"
    + f"const PERMUTED: [u64; {CHOSEN}] = {sources};\n"
    + f"const DEAD: [usize; {DEAD}] = {dead};\n"
    + "// Episodes in the order in which they are chosen.\n"
    + f"const EPISODES: [u32; {EPISODES}] = {episodes};\n"
)
