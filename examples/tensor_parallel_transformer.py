"""A transformer block in plain NumPy, with heads and hidden units cut over several logical devices.

    python examples/tensor_parallel_transformer.py              # on 1, 2, 4 and 8 devices, with the collectives
    python examples/tensor_parallel_transformer.py --devices 4 --explain

The code of the block does not mention devices: only its weights are cut. Each device holds some of the heads and some
of the hidden units, and computes with them. A block sums over the devices twice: after the heads, and after the hidden
units.
"""

from __future__ import annotations

import argparse

import numpy as np

import ringlet
from ringlet.sharding import Sharding, explain, shard

HEADS, WIDTH, HIDDEN = 8, 128, 512

# Dimension along which each matrix is cut: results of the first four stay on the device and feed the last two.
CUT_DIMENSION = {"query": 1, "key": 1, "value": 1, "up": 1, "out": 0, "down": 0}

# Logical devices of a replica: its block of the slice, as chips along x, y and z and cores of a chip.
SHAPES = {1: [1, 1, 1, 1], 2: [1, 1, 1, 2], 4: [1, 1, 2, 2], 8: [1, 2, 2, 2]}


# --- the model ------------------------------------------------------------------------------------------------------


def normalized(x):
    """Normalize each position to mean 0 and variance 1."""
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def attention(x, weights):
    """Causal self-attention; x is [batch, position, feature]."""
    batch, length, _ = x.shape
    query, key, value = (
        np.reshape(x @ weights[name], (batch, length, HEADS, -1)) for name in ("query", "key", "value")
    )
    scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(WIDTH // HEADS).astype(x.dtype)
    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    taken = np.einsum("bhqk,bkhd->bqhd", scores / scores.sum(axis=-1, keepdims=True), value)
    return np.reshape(taken, (batch, length, WIDTH)) @ weights["out"]


def block(x, weights):
    """Pre-norm transformer block, as in GPT-2."""
    x = x + attention(normalized(x), weights)
    hidden = normalized(x) @ weights["up"]
    return x + np.maximum(hidden, 0) @ weights["down"]


def initial_weights(seed=0):
    random = np.random.default_rng(seed)
    shapes = dict.fromkeys(CUT_DIMENSION, (WIDTH, WIDTH)) | {"up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    return {
        name: (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for name, shape in shapes.items()
    }


# --- on several devices ---------------------------------------------------------------------------------------------


def tiles_of(name, devices):
    """Return the number of tiles of a matrix along each dimension."""
    return [devices if dimension == CUT_DIMENSION[name] else 1 for dimension in range(2)]


def run_outside(x, weights, devices):
    """Run the block with weights that are sharded without a strategy."""
    cut = {name: shard(matrix, Sharding.tiled(tiles_of(name, devices))) for name, matrix in weights.items()}
    return block(x, cut)


def run_in_strategy(x, weights, devices):
    """Run the block as the step of a replica with that many logical devices."""
    resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-16")
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, SHAPES[devices], num_replicas=1)
    strategy = ringlet.TPUStrategy(resolver, assignment)

    def step(x):
        split = strategy.experimental_split_to_logical_devices
        return block(x, {name: split(matrix, tiles_of(name, devices)) for name, matrix in weights.items()})

    return strategy.run(step, args=(x,))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, choices=SHAPES, help="default: all of these")
    parser.add_argument("--explain", action="store_true", help="print each operation with the bytes that it sends")
    options = parser.parse_args(arguments)
    x, weights = np.random.default_rng(1).standard_normal((2, 64, WIDTH)).astype(np.float32), initial_weights()
    expected = block(x, weights)
    for devices in [options.devices] if options.devices else SHAPES:
        for run in (run_outside, run_in_strategy):
            with explain() as report:
                result = np.asarray(run(x, weights, devices))
            difference = np.abs(result - expected).max() / np.abs(expected).max()
            sent = ", ".join(f"{count} {kind}" for kind, count in report.counts.items()) or "nothing"
            print(f"{run.__name__:16} {devices} device{'s' * (devices > 1)}: off by {difference:.0e}, sent {sent}")
            if options.explain:
                print(report)


if __name__ == "__main__":
    main()
