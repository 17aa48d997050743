"""Train with JAX data-parallel: jax.grad computes the gradients in the step, ringlet adds them over the replicas.

    python examples/jax_training.py                  # one replica per core
    python examples/jax_training.py --replicas 1     # computes the same, up to rounding

`all_reduce` takes JAX arrays and returns JAX arrays: the replicas share one buffer, because JAX arrays are immutable.
Call ringlet outside of functions under `jax.jit`, like any library other than JAX.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import ringlet

BATCH = 96
HIDDEN = 128
LEARNING_RATE = 0.3


def load_data():
    """Return images and labels as (training, test): the last 360 of a seeded permutation are the test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = jnp.asarray(digits.data[order] / 16, jnp.float32), jnp.asarray(digits.target[order], jnp.int32)
    return (images[:-360], labels[:-360]), (images[-360:], labels[-360:])


def initial_weights():
    first, second = jax.random.split(jax.random.key(0))
    return {
        "w1": jax.random.normal(first, (64, HIDDEN)) / 8,
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(second, (HIDDEN, 10)) / jnp.sqrt(HIDDEN),
        "b2": jnp.zeros(10),
    }


def forward(weights, images):
    hidden = jax.nn.relu(images @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def loss_of(weights, images, labels):
    """Return the cross-entropy, summed (not averaged) over the images."""
    logarithms = jax.nn.log_softmax(forward(weights, images))
    return -jnp.take_along_axis(logarithms, labels[:, None], axis=1).sum()


loss_and_gradients = jax.jit(jax.value_and_grad(loss_of))
count_correct = jax.jit(lambda weights, images, labels: jnp.sum(forward(weights, images).argmax(axis=1) == labels))


@jax.jit
def updated(weights, gradients, rows):
    return jax.tree.map(lambda weight, gradient: weight - LEARNING_RATE / rows * gradient, weights, gradients)


def train_step(weights, images, labels):
    """Run one step of a replica on its slice of the batch; return the sums over the whole batch."""
    loss, gradients = loss_and_gradients(weights, images, labels)
    # Sums and the number of rows, not means: slices of different sizes then have the right weights.
    return ringlet.replica_context().all_reduce("SUM", {"loss": loss, "rows": len(labels), "gradients": gradients})


def train(replicas=None, epochs=10):
    """Train from scratch; return the weights, and the accuracy on the test images after each epoch."""
    strategy = ringlet.MirroredStrategy(None if replicas is None else [f"CPU:{i}" for i in range(replicas)])
    training, test = load_data()
    dataset = ringlet.data.Dataset.from_tensor_slices(training).shuffle(2000, seed=0).batch(BATCH)
    batches = strategy.experimental_distribute_dataset(dataset)
    weights, accuracies = initial_weights(), []
    for epoch in range(1, epochs + 1):
        loss = 0.0
        for batch in batches:
            sums = strategy.run(train_step, args=(weights, *batch))
            total = jax.tree.map(lambda value: strategy.experimental_local_results(value)[0], sums)
            weights = updated(weights, total["gradients"], int(total["rows"]))
            loss += float(total["loss"])
        accuracies.append(int(count_correct(weights, *test)) / 360)
        print(f"epoch {epoch:2}  loss {loss / 1437:.4f}  accuracy {accuracies[-1]:.2%}")
    return weights, accuracies


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, help="default: one per core")
    parser.add_argument("--epochs", type=int, default=10, help="default: %(default)s")
    options = parser.parse_args(arguments)
    train(options.replicas, options.epochs)


if __name__ == "__main__":
    main()
