"""Bootstrap real measurements on all cores: how far apart the medians of two groups of tumours lie, and how surely.

    python examples/bootstrap.py                      # one replica per core
    python examples/bootstrap.py --resamples 100000   # narrower quantiles

Each resample draws patients with replacement and takes the medians anew. The work is one map: `median_differences`
computes a block of resamples with NumPy, and `strategy.map` hands batches of blocks to the replicas. A block has a
seed of its own, so the result has the same bits on any number of replicas.
"""

from __future__ import annotations

import argparse
import functools
from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer

import ringlet

BLOCK = 64  # resamples of one call: large enough that NumPy, not Python, takes the time


def load_groups():
    """Return the names of 30 measurements, and those of malignant and of benign tumours, one row per measurement."""
    data = load_breast_cancer()
    return data.feature_names, tuple(data.data[data.target == kind].T.copy() for kind in (0, 1))


def median_differences(groups, block):
    """Return the differences of the medians in one block of resamples, shape (BLOCK, measurements)."""
    rng = np.random.default_rng(block)
    drawn = (group.take(rng.integers(group.shape[1], size=(BLOCK, group.shape[1])), axis=1) for group in groups)
    malignant, benign = (np.median(values, axis=2) for values in drawn)
    return (malignant - benign).T


def map_blocks(groups, blocks):
    """Return the differences in each block, shape (blocks, BLOCK, measurements): the function that replicas run."""
    return np.stack([median_differences(groups, block) for block in blocks])


def bootstrap(strategy, groups, blocks):
    """Return the same, computed by all replicas."""
    return strategy.map(functools.partial(map_blocks, groups), np.arange(blocks))


def report(names, groups, differences):
    low, high = np.quantile(differences, [0.025, 0.975], axis=(0, 1))
    print(f"{'median of':24}{'malignant':>10}{'benign':>10}   95 % interval of the difference")
    for i, name in enumerate(names[:10]):
        malignant, benign = (np.median(group[i]) for group in groups)
        print(f"{name:24}{malignant:10.4g}{benign:10.4g}   {low[i]:.4g} to {high[i]:.4g}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resamples", type=int, default=20_000, help="default: %(default)s")
    blocks = -(-parser.parse_args(arguments).resamples // BLOCK)
    names, groups = load_groups()
    strategy = ringlet.MirroredStrategy()
    start = perf_counter()
    differences = bootstrap(strategy, groups, blocks)
    several = perf_counter() - start
    alone = map_blocks(groups, range(blocks))
    one = perf_counter() - start - several
    report(names, groups, differences)
    print(f"\n{blocks * BLOCK} resamples, equal bits: {np.array_equal(differences, alone)}")
    print(f"one core    {one:6.2f} s")
    print(f"{strategy.num_replicas_in_sync:2} replicas {several:6.2f} s   speed-up {one / several:.2f}")


if __name__ == "__main__":
    main()
