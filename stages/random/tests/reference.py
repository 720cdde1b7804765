#!/usr/bin/env python3
"""Writes reference.in: draws of provenir-random computed without it. Needs `pip install blake3`."""

import pathlib
import struct

from blake3 import blake3

MASK = 0xFFFFFFFF


def philox(key, counter):
    """Philox4x32-10, after Salmon et al. (2011), section 4.3, figure 2 and table 2."""
    k, c = list(key), list(counter)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def draws(identity, count):
    words = struct.unpack("<8I", identity)
    values = []
    for index in range((count + 1) // 2):
        a, b, c, d = philox(words[:2], (index & MASK, index >> 32, words[2], words[3]))
        values += [a | b << 32, c | d << 32]
    return values[:count]


def array(name, values):
    lines = "".join(f"    0x{value:016_x},\n" for value in values)
    return f"const {name}: [u64; {len(values)}] = [\n{lines}];\n"


seed = 20220131
root = blake3(
    seed.to_bytes(8, "little") + b"reference", derive_key_context="provenir random v1 stream"
).digest()
child = blake3(
    root + (41).to_bytes(8, "little") + b"episode", derive_key_context="provenir random v1 child"
).digest()
pathlib.Path(__file__).with_name("reference.in").write_text(
    f"const REFERENCE_SEED: u64 = {seed:_};\n"
    + array("REFERENCE_ROOT", draws(root, 5))
    + array("REFERENCE_CHILD", draws(child, 4))
)
