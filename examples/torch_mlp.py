"""Train a PyTorch model of 10 million parameters on several processes, each with its slice of every batch.

    ringlet run -n 2 examples/torch_mlp.py                      # gradients combined by ringlet
    ringlet run -n 2 examples/torch_mlp.py --with gloo          # by DistributedDataParallel over gloo
    python -m bench.torch_mlp                                   # both in alternation: steps per second

The digits of scikit-learn, each pixel enlarged to 4 x 4. All processes start with the same seeded weights, and stay
equal, because each step they get the mean of the same gradients. Ringlet writes gradients to one flat array in shared
memory, and combines them in place: nothing is sent. Torch uses one thread in each process.
"""

from __future__ import annotations

import argparse
import itertools
import os
from time import perf_counter

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

import ringlet

BATCH = 32
LEARNING_RATE = 0.05
WIDTHS = (1024, 2048, 2048, 1800, 10)  # 10.0 million parameters


def load_data():
    """Return images as rows of 1,024 pixels, and their labels, in a seeded order."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = np.kron(digits.images[order] / 16, np.ones((4, 4))).reshape(len(order), -1)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(digits.target[order])


def make_module(widths=WIDTHS):
    """Build layers with rectifiers between them, and seeded weights."""
    torch.manual_seed(0)
    layers = []
    for before, after in itertools.pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def worker_of(strategy):
    """Return the index of this worker, where each worker has one replica."""
    return int(strategy.run(lambda: ringlet.replica_context().replica_id_in_sync_group))


class Part:
    """Slice of every batch that belongs to one worker."""

    def __init__(self, worker, num_workers, batch=BATCH):
        self.images, self.labels = load_data()
        self._rows, self._first = batch // num_workers, worker * (batch // num_workers)
        self._batch, self.steps = batch, len(self.labels) // batch

    def __getitem__(self, step):
        begin = step % self.steps * self._batch + self._first
        rows = slice(begin, begin + self._rows)
        return self.images[rows], self.labels[rows]


class SharedGradients:
    """Gradients of a module, concatenated in an array in shared memory."""

    def __init__(self, module):
        self.parameters = list(module.parameters())
        self._sizes = [parameter.numel() for parameter in self.parameters]
        self.array = ringlet.empty_shared(sum(self._sizes), np.float32)
        places = self._cut(torch.from_numpy(self.array))
        for parameter, place in zip(self.parameters, places, strict=True):
            parameter.register_post_accumulate_grad_hook(self._mover(place))

    def _cut(self, flat):
        pieces = flat.split(self._sizes)
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, self.parameters, strict=True)]

    @staticmethod
    def _mover(place):
        def move(parameter):  # while the gradient is in the cache; its memory is reused for the next one
            place.copy_(parameter.grad)
            parameter.grad = None

        return move

    def use(self, combined):
        """Set the gradients of all parameters to views of an array.

        All processes of a machine share this array. Code that writes to gradients, such as `clip_grad_norm_`,
        would change them for all processes: pass a copy, ``use(mean.copy())``.
        """
        for parameter, piece in zip(self.parameters, self._cut(torch.from_dlpack(combined)), strict=True):
            parameter.grad = piece


class RingletTrainer:
    """Trainer that combines gradients with ``all_reduce`` over the workers of a MultiWorkerMirroredStrategy."""

    def __init__(self, batch=BATCH, widths=WIDTHS):
        self.strategy = ringlet.MultiWorkerMirroredStrategy()
        if len(self.strategy.extended.worker_devices) > 1:
            raise SystemExit("each process trains one module: start more processes, with one replica each")
        self.module = make_module(widths)
        self._gradients = SharedGradients(self.module)
        self._optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE)
        self.data = Part(worker_of(self.strategy), self.strategy.num_replicas_in_sync, batch)

    def step(self, number):
        """Train on one batch; return the loss of this worker's slice."""
        return self.strategy.run(self._step, args=self.data[number])

    def _step(self, images, labels):
        loss = functional.cross_entropy(self.module(images), labels)
        loss.backward()
        mean = ringlet.replica_context().all_reduce("MEAN", self._gradients.array)
        self._gradients.use(mean)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss.detach()

    def close(self):
        """Do nothing: the strategy closes itself."""


class GlooTrainer:
    """Trainer that combines gradients with DistributedDataParallel, in buckets during the backward pass."""

    def __init__(self, batch=BATCH, widths=WIDTHS, bucket_megabytes=25):
        worker, num_workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        torch.distributed.init_process_group("gloo", rank=worker, world_size=num_workers)
        self.module = make_module(widths)
        self._parallel = torch.nn.parallel.DistributedDataParallel(
            self.module, gradient_as_bucket_view=True, static_graph=True, bucket_cap_mb=bucket_megabytes
        )
        self._optimizer = torch.optim.SGD(self.module.parameters(), lr=LEARNING_RATE)
        self.data = Part(worker, num_workers, batch)

    def step(self, number):
        """Train on one batch; return the loss of this worker's slice."""
        images, labels = self.data[number]
        loss = functional.cross_entropy(self._parallel(images), labels)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss.detach()

    def close(self):
        """Leave the group."""
        torch.distributed.destroy_process_group()


TRAINERS = {"ringlet": RingletTrainer, "gloo": GlooTrainer}


def gloo_environment(strategy):
    """Return the variables of torch.distributed for this process: rank, world size, address and a free port."""
    count = strategy.num_replicas_in_sync
    port = ringlet.once_per_host(_free_port, name="a port for gloo")
    return {
        "RANK": str(worker_of(strategy)),
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def main():
    """Train, and print loss and speed of each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--with", dest="trainer", default="ringlet", choices=TRAINERS)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=BATCH, help="rows of a global batch")
    parser.add_argument("--hidden", type=int, help="units of each hidden layer, for a smaller model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    widths = WIDTHS if options.hidden is None else (1024, options.hidden, options.hidden, 10)
    if options.trainer == "gloo":
        os.environ.update(gloo_environment(ringlet.MultiWorkerMirroredStrategy()))
    trainer = TRAINERS[options.trainer](options.batch, widths)
    steps, start = options.epochs * trainer.data.steps, perf_counter()
    for number in ringlet.progress(range(steps), options.trainer):
        loss = trainer.step(number)
        if (number + 1) % trainer.data.steps == 0:
            rate = trainer.data.steps / (perf_counter() - start)
            start = perf_counter()
            ringlet.print0(f"epoch {(number + 1) // trainer.data.steps}  loss {float(loss):.4f}  {rate:.1f} steps/s")
    ringlet.checks.all_equal([parameter.detach() for parameter in trainer.module.parameters()], "the weights")
    ringlet.print0("the weights are the same in all processes")
    trainer.close()


if __name__ == "__main__":
    main()
