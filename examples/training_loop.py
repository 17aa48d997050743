"""A custom training loop: variables, a dataset cut over replicas, one step per replica, sums over all replicas.

    python examples/training_loop.py                  # one replica per core
    python examples/training_loop.py --replicas 1     # computes the same, up to rounding

Handwritten digits, classified by one matrix. The gradients are written in NumPy; examples/torch_training.py and
examples/jax_training.py compute them with PyTorch and JAX.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

import ringlet

BATCH = 96
LEARNING_RATE = 0.5


def load_data():
    """Return images and labels as (training, test): the last 360 of a seeded permutation are the test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = digits.data[order] / 16, digits.target[order]
    return (images[:-360], labels[:-360]), (images[-360:], labels[-360:])


def train(replicas=None, epochs=10):
    """Train from scratch; return the accuracy on the test images after each epoch."""
    devices = None if replicas is None else [f"CPU:{i}" for i in range(replicas)]
    strategy = ringlet.MirroredStrategy(devices)
    with strategy.scope():  # variables are the same on all replicas, in one buffer
        weights = ringlet.Variable(np.zeros((64, 10)), name="weights")
        bias = ringlet.Variable(np.zeros(10), name="bias")

    def train_step(images, labels):  # runs once for each replica, with its slice of the batch
        replica = ringlet.replica_context()
        scores = images @ weights.read_value() + bias.read_value()
        scores -= scores.max(axis=1, keepdims=True)
        logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        chosen = np.eye(10)[labels]
        d_scores = np.exp(logarithms) - chosen
        # Sums and the number of rows, not means: slices of different sizes then have the right weights.
        sums = replica.all_reduce(
            "SUM", {"weights": images.T @ d_scores, "bias": d_scores.sum(axis=0), "rows": len(labels)}
        )
        for variable, name in ((weights, "weights"), (bias, "bias")):
            variable.assign_sub(LEARNING_RATE / sums["rows"] * sums[name])
        return -(chosen * logarithms).sum()

    def count_correct(images, labels):
        return np.sum((images @ weights.read_value() + bias.read_value()).argmax(axis=1) == labels)

    training, test = (ringlet.data.Dataset.from_tensor_slices(part) for part in load_data())
    training = strategy.experimental_distribute_dataset(training.shuffle(2000, seed=0).batch(BATCH))
    test = strategy.experimental_distribute_dataset(test.batch(360))
    accuracies = []
    for epoch in range(1, epochs + 1):
        losses = [strategy.reduce("SUM", strategy.run(train_step, args=batch), axis=None) for batch in training]
        correct = sum(strategy.reduce("SUM", strategy.run(count_correct, args=batch), axis=None) for batch in test)
        accuracies.append(correct / 360)
        print(f"epoch {epoch:2}  loss {sum(losses) / 1437:.4f}  accuracy {accuracies[-1]:.2%}")
    return accuracies


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, help="default: one per core")
    parser.add_argument("--epochs", type=int, default=10, help="default: %(default)s")
    options = parser.parse_args(arguments)
    train(options.replicas, options.epochs)


if __name__ == "__main__":
    main()
