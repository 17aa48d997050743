"""A convolutional network, trained on images that are cut along height and width over several logical devices.

    python examples/spatial_cnn.py              # on 1, 2, 4 and 8 devices, with the bytes sent
    python examples/spatial_cnn.py --steps 60

Three layers, forward and backward, written once for plain and sharded arrays. Devices send only the edges of their
tiles, which the convolutions of their neighbours need, and the sums of the kernels' gradients.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

import ringlet
from ringlet.sharding import Sharding, conv_general, conv_general_vjp, explain, max_pool, max_pool_vjp, shard

# Tiles along height and width of the images.
TILES = {1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (4, 2)}

# Logical devices of a replica: its block of the slice, as chips along x, y and z and cores of a chip.
SHAPES = {1: [1, 1, 1, 1], 2: [1, 1, 1, 2], 4: [1, 1, 2, 2], 8: [1, 2, 2, 2]}

SETTINGS = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
POOL = (2, 2)
RATE = 0.1


# --- the model ------------------------------------------------------------------------------------------------------


def forward(images, kernels):
    """Return the scores of each image for each class, and the values that the backward pass needs."""
    x, kept = images, []
    for kernel in kernels[:-1]:
        convolved = conv_general(x, kernel, **SETTINGS)
        active = np.maximum(convolved, 0)
        kept.append((x, convolved, active))
        x = max_pool(active, POOL)
    maps = conv_general(x, kernels[-1], **SETTINGS)
    kept.append((x, maps, None))
    return maps.mean(axis=(1, 2)), kept


def backward(d_scores, kernels, kept):
    """Return the gradient of each kernel."""
    x, maps, _ = kept[-1]
    d_maps = np.ones_like(maps) * d_scores[:, None, None] / (maps.shape[1] * maps.shape[2])
    d_x, d_kernel = conv_general_vjp(x, kernels[-1], d_maps, **SETTINGS)
    gradients = [d_kernel]
    for kernel, (x, convolved, active) in zip(kernels[-2::-1], kept[-2::-1], strict=True):
        d_convolved = np.where(convolved > 0, max_pool_vjp(active, d_x, POOL), 0)
        d_x, d_kernel = conv_general_vjp(x, kernel, d_convolved, **SETTINGS)
        gradients.insert(0, d_kernel)
    return gradients


def train_step(images, labels, kernels):
    """Return the loss, and the kernels after one step of gradient descent."""
    scores, kept = forward(images, kernels)
    logarithms = scores - scores.max(axis=1, keepdims=True)
    logarithms = logarithms - np.log(np.exp(logarithms).sum(axis=1, keepdims=True))
    chosen = np.eye(3)[labels]
    gradients = backward((np.exp(logarithms) - chosen) / len(labels), kernels, kept)
    loss = -(chosen * logarithms).sum() / len(labels)
    return loss, [kernel - RATE * gradient for kernel, gradient in zip(kernels, gradients, strict=True)]


def train(images, labels, kernels, steps):
    """Return the losses of all steps, and the kernels after the last one."""
    losses = []
    for _ in range(steps):
        loss, kernels = train_step(images, labels, kernels)
        losses.append(float(loss))
    return losses, kernels


def stripes(count=24, size=16, seed=0):
    """Return noisy images with horizontal, vertical or diagonal stripes, and their labels."""
    random = np.random.default_rng(seed)
    labels, phases = random.integers(0, 3, count), random.uniform(0, 2 * np.pi, count)
    row, column = np.mgrid[:size, :size] * (np.pi / 2)
    waves = np.stack([row, column, row + column])[labels] + phases[:, None, None]
    return (np.sin(waves) + 0.3 * random.standard_normal(waves.shape))[..., None], labels


def initial_kernels(seed=0):
    random, widths = np.random.default_rng(seed), (1, 8, 16, 3)
    return [random.standard_normal((3, 3, m, n)) / np.sqrt(4.5 * m) for m, n in itertools.pairwise(widths)]


# --- on several devices ---------------------------------------------------------------------------------------------


def run_outside(images, labels, steps, devices):
    """Train on images that are sharded without a strategy."""
    return train(shard(images, Sharding.tiled((1, *TILES[devices], 1))), labels, initial_kernels(), steps)


def run_in_strategy(images, labels, steps, devices):
    """Train in a replica with that many logical devices."""
    resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-16")
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, SHAPES[devices], num_replicas=1)
    strategy = ringlet.TPUStrategy(resolver, assignment)

    def steps_of_replica(images, labels):
        images = strategy.experimental_split_to_logical_devices(images, [1, *TILES[devices], 1])
        return train(images, labels, initial_kernels(), steps)

    return strategy.run(steps_of_replica, args=(images, labels))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error(f"--steps is at least 1, got {options.steps}")
    images, labels = stripes()
    expected, _ = train(images, labels, initial_kernels(), options.steps)
    print(f"untiled: loss {expected[0]:.4f} -> {expected[-1]:.4f}")
    for devices, tiles in TILES.items():
        for run in (run_outside, run_in_strategy):
            with explain() as report:
                losses, _ = run(images, labels, options.steps, devices)
            difference = np.abs(np.subtract(losses, expected)).max()
            print(
                f"{run.__name__:16} {tiles[0]} x {tiles[1]} tiles: off by {difference:.0e}, "
                f"{report.nbytes / options.steps / 1024:.1f} KiB sent in a step"
            )


if __name__ == "__main__":
    main()
