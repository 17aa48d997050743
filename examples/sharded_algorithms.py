"""Five algorithms in plain NumPy on divided arrays, with the bytes that devices send beside those of textbooks.

    python examples/sharded_algorithms.py
    python examples/sharded_algorithms.py --devices 8 --size 64

A 3-D Fourier transform, a sort, principal components, a Poisson solver and k-means. No array is gathered: `strict`
would raise an error. Each program is also run on plain arrays, and the results are compared.
"""

from __future__ import annotations

import argparse

import numpy as np

from ringlet.sharding import Mesh, explain, map_halo, random, strict

# --- programs of plain NumPy ------------------------------------------------------------------------------------------


def fourier(field):
    """Return the spectrum of a field of three dimensions."""
    return np.fft.fftn(field)


def order(values):
    """Return the values in ascending order."""
    return np.sort(values)


def components(points):
    """Return the directions of largest variance, as rows, without their arbitrary signs."""
    _, _, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    return np.abs(directions)


def poisson(charge, steps=20):
    """Return the potential of a charge on a plate with a grounded edge after some steps of conjugate gradients."""

    def apply(part):  # of the neighbours of each point; `part` has one more element at each end
        return 4 * part[1:-1, 1:-1] - part[:-2, 1:-1] - part[2:, 1:-1] - part[1:-1, :-2] - part[1:-1, 2:]

    potential, residual = np.zeros_like(charge), charge.copy()
    direction, norm = residual, np.vdot(residual, residual)
    for _ in range(steps):
        image = map_halo(apply, direction, 1)
        length = norm / np.vdot(direction, image)
        potential, residual = potential + length * direction, residual - length * image
        norm, before = np.vdot(residual, residual), norm
        direction = residual + norm / before * direction
    return potential


def k_means(points, steps=5, number=4):
    """Return the centres of groups of points."""
    centres = np.linspace(-1, 1, number)[:, None] * np.ones(points.shape[1])
    for _ in range(steps):
        nearest = ((points[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        is_member = (nearest[:, None] == np.arange(number)).astype(float)
        centres = (is_member.T @ points) / is_member.sum(axis=0)[:, None]
    return centres


# --- bytes of textbooks, of all devices together ----------------------------------------------------------------------


def all_reduce(devices, count):
    """Return the bytes to sum `count` floats: each is sent to be added up, and back."""
    return 2 * (devices - 1) * count * 8


def exchange(devices, count, itemsize):
    """Return the bytes to move elements to arbitrary devices: all but those that stay."""
    return (devices - 1) * count * itemsize // devices


def programs(devices, size):
    """Return each program with its input, divided, and the bytes of a textbook."""
    rng, mesh = random.default_rng(0), Mesh({"rows": devices})
    rows = mesh.sharding("rows")
    width, count = 8, size**2
    return {
        "3-D FFT": (
            fourier,
            rng.normal(size=(size, size, size), sharding=rows),
            exchange(devices, size**3, 16),  # one transposition of complex numbers
        ),
        "sort": (
            order,
            rng.random(count * 16, sharding=rows),
            exchange(devices, count * 16, 8),
        ),
        "PCA": (
            components,
            rng.normal(size=(count, width), sharding=rows) * np.arange(1.0, width + 1),
            # The triangle of each device's QR decomposition to all others; the means.
            devices * (devices - 1) * width * width * 8 + all_reduce(devices, width),
        ),
        "Poisson": (
            poisson,
            rng.normal(size=(size, size), sharding=rows),
            # One row to each neighbour and two products in each step.
            20 * (2 * (devices - 1) * size * 8 + all_reduce(devices, 2)) + all_reduce(devices, 1),
        ),
        "k-means": (
            k_means,
            rng.normal(size=(count, 2), sharding=rows),
            5 * all_reduce(devices, 4 * 2 + 4),  # sums and counts of the groups
        ),
    }


def run(devices, size):
    """Run the programs; return (name, bytes sent, bytes of a textbook, largest difference from NumPy) of each."""
    found = []
    for name, (program, given, textbook) in programs(devices, size).items():
        with strict(), explain() as report:
            result = program(given)
        plain = program(given.numpy())
        found.append((name, report.nbytes, textbook, float(np.abs(result.numpy() - plain).max() / np.abs(plain).max())))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--size", type=int, default=32, help="points along an edge, a multiple of --devices")
    options = parser.parse_args(arguments)
    if options.devices < 1 or options.size < 1 or options.size % options.devices:
        parser.error(f"--size is a multiple of --devices, got {options.size} and {options.devices}")
    for name, sent, textbook, difference in run(options.devices, options.size):
        print(f"{name:8} {sent:>9,} B sent, {textbook:>9,} B in textbooks, off by {difference:.0e}")


if __name__ == "__main__":
    main()
