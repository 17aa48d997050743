"""Heat equation on a plate: a stencil in plain NumPy, on an array that is cut over several logical devices.

    python examples/heat_equation.py                  # on 1, 2, 4 and 8 devices, with the bytes sent
    python examples/heat_equation.py --size 1024 --steps 50

A step reads the four neighbours of each point, so devices send each other the edges of their tiles: square tiles
send fewer bytes than strips. The results have the same bits.
"""

from __future__ import annotations

import argparse

import numpy as np

import ringlet
from ringlet.sharding import Sharding, explain, shard

RATE = 0.2  # fraction of the temperature difference that flows in a step; stable up to 0.25

# Tiles along both dimensions of the plate.
TILES = {1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (4, 2)}

# Logical devices of a replica: its block of the slice, as chips along x, y and z and cores of a chip.
SHAPES = {1: [1, 1, 1, 1], 2: [1, 1, 1, 2], 4: [1, 1, 2, 2], 8: [1, 2, 2, 2]}


# --- the model ------------------------------------------------------------------------------------------------------


def plate_of(size):
    """Return a cold plate with a hot upper edge, and the mask of its fixed temperatures: all four edges."""
    plate, is_kept = np.zeros((size, size)), np.ones((size, size), bool)
    plate[0] = 100.0
    is_kept[1:-1, 1:-1] = False
    return plate, is_kept


def spread(plate, is_kept, steps):
    """Return the temperatures after some steps. Values that np.roll wraps reach only the edges, which are fixed."""
    for _ in range(steps):
        around = np.roll(plate, 1, 0) + np.roll(plate, -1, 0) + np.roll(plate, 1, 1) + np.roll(plate, -1, 1)
        plate = np.where(is_kept, plate, plate + RATE * (around - 4 * plate))
    return plate


# --- on several devices ---------------------------------------------------------------------------------------------


def run_outside(plate, is_kept, steps, devices):
    """Run the steps on a plate that is sharded without a strategy."""
    sharding = Sharding.tiled(TILES[devices])
    return spread(shard(plate, sharding), shard(is_kept, sharding), steps)


def run_in_strategy(plate, is_kept, steps, devices):
    """Run the steps in a replica with that many logical devices."""
    resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-16")
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, SHAPES[devices], num_replicas=1)
    strategy = ringlet.TPUStrategy(resolver, assignment)

    def step(plate, is_kept):
        split = strategy.experimental_split_to_logical_devices
        return spread(split(plate, TILES[devices]), split(is_kept, TILES[devices]), steps)

    return strategy.run(step, args=(plate, is_kept))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=32, help="points along an edge, a multiple of 16")
    parser.add_argument("--steps", type=int, default=400, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.size < 16 or options.size % 16:
        parser.error(f"--size is a multiple of 16, got {options.size}")
    plate, is_kept = plate_of(options.size)
    expected = spread(plate, is_kept, options.steps)
    for devices, tiles in TILES.items():
        for run in (run_outside, run_in_strategy):
            with explain() as report:
                result = run(plate, is_kept, options.steps, devices)
            is_same = np.array_equal(np.asarray(result), expected)
            print(
                f"{run.__name__:16} {tiles[0]} x {tiles[1]} tiles: "
                f"{report.nbytes / max(1, options.steps) / 1024:6.2f} KiB sent in a step, "
                f"{'the same bits' if is_same else 'DIFFERENT BITS'}"
            )
    shades = " .:-=+*#%@"
    rows = expected[:: options.size // 8, :: options.size // 16]
    print(*("".join(shades[int(heat / 100.001 * len(shades))] for heat in row) for row in rows), sep="\n")


if __name__ == "__main__":
    main()
