"""Train a PyTorch module data-parallel: torch computes the gradients, ringlet adds them over the replicas.

    python examples/torch_training.py                # one replica per core
    python examples/torch_training.py --compare      # times a step on 2 replicas and on 1, at equal global batch

Each replica is one thread of this process, with its own module and optimizer. Torch uses one thread per
replica. `all_reduce` takes tensors and returns tensors, in memory that each replica may write to.
"""

from __future__ import annotations

import argparse
import copy
from statistics import median
from time import perf_counter

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

import ringlet

BATCH = 240
CHANNELS = 64
LEARNING_RATE = 0.003


def load_data():
    """Return tensors of images and labels as (training, test): the last 360 of a seeded permutation are the test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = torch.tensor(digits.images[order] / 16, dtype=torch.float32)[:, None]
    labels = torch.tensor(digits.target[order])
    return (images[:-360], labels[:-360]), (images[-360:], labels[-360:])


def make_module(channels):
    """Build two convolutions and a layer on top, with seeded weights."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, channels, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(channels, channels, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(channels * 16, 10),
    )


class Replica:
    """State of one replica: all modules start equal and stay equal, because they get the same gradients."""

    def __init__(self, module):
        self.module = copy.deepcopy(module)
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=LEARNING_RATE)


def train_step(mine, images, labels):
    """Run one step of a replica on its slice of the batch; return the loss of the whole batch."""
    mine.optimizer.zero_grad()
    loss = functional.cross_entropy(mine.module(images), labels, reduction="sum")
    loss.backward()
    parameters = list(mine.module.parameters())
    # Sums and the number of rows, not means: slices of different sizes then have the right weights.
    sums = ringlet.replica_context().all_reduce(
        "SUM", {"loss": loss.detach(), "rows": len(labels), "gradients": [p.grad for p in parameters]}
    )
    for parameter, gradient in zip(parameters, sums["gradients"], strict=True):
        parameter.grad = gradient.div_(int(sums["rows"]))
    mine.optimizer.step()
    return sums["loss"] / int(sums["rows"])


class Trainer:
    """Strategy, distributed dataset, and the state of each replica."""

    def __init__(self, replicas, channels=CHANNELS, batch=BATCH):
        self.strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        module = make_module(channels)
        self.replicas = self.strategy.experimental_distribute_values_from_function(lambda _: Replica(module))
        training, self.test = load_data()
        dataset = ringlet.data.Dataset.from_tensor_slices(training).shuffle(2000, seed=0).batch(batch)
        self.batches = self.strategy.experimental_distribute_dataset(dataset.prefetch(2))

    def modules(self):
        return [mine.module for mine in self.strategy.experimental_local_results(self.replicas)]

    def step(self, batch):
        losses = self.strategy.run(train_step, args=(self.replicas, *batch))
        return float(self.strategy.experimental_local_results(losses)[0])  # equal on all replicas

    def accuracy(self):
        images, labels = self.test
        with torch.no_grad():
            return float((self.modules()[0](images).argmax(dim=1) == labels).float().mean())


def train(replicas, epochs, channels=CHANNELS):
    """Train from scratch; return the trainer."""
    trainer = Trainer(replicas, channels)
    for epoch in range(1, epochs + 1):
        losses = [trainer.step(batch) for batch in trainer.batches]
        print(f"epoch {epoch:2}  loss {losses[-1]:.4f}  accuracy {trainer.accuracy():.2%}")
    return trainer


def compare(replicas=2, channels=CHANNELS, rounds=15):
    """Return median seconds of a step on one replica and on several, in alternation, at equal global batch."""
    trainers = [Trainer(1, channels), Trainer(replicas, channels)]
    batches = [next(iter(trainer.batches)) for trainer in trainers]
    seconds = [[], []]
    for number in range(rounds + 2):
        for trainer, batch, taken in zip(trainers, batches, seconds, strict=True):
            start = perf_counter()
            trainer.step(batch)
            if number >= 2:  # the first two rounds allocate
                taken.append(perf_counter() - start)
    one, many = map(median, seconds)
    print(f"a step of {BATCH} images, one thread of torch for each replica, median of {rounds}:")
    print(f"   1 replica  {one * 1e3:8.1f} ms")
    print(f"{replicas:4} replicas {many * 1e3:8.1f} ms   speed-up {one / many:.2f}")
    return one, many


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, help="default: one per core, at least 2")
    parser.add_argument("--epochs", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--channels", type=int, default=CHANNELS, help="of the convolutions; default: %(default)s")
    parser.add_argument("--compare", action="store_true", help="time a step, and one on 1 replica")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # per calling thread: the replicas share the cores
    replicas = options.replicas or max(2, ringlet.show_config("dicts")["cores"]["count"])
    if options.compare:
        compare(replicas, options.channels)
    else:
        train(replicas, options.epochs, options.channels)


if __name__ == "__main__":
    main()
