"""Train on two replicas, stop at any step, and resume in another process with the same results.

Run it repeatedly with the same folder: each run resumes at the last checkpoint.

    python examples/resume_training.py runs/line --steps 40
    python examples/resume_training.py runs/line --steps 100
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ringlet

RATE = 0.1


class Training:
    """Fit of a line to noisy points by gradient descent: variables, data, and the step."""

    def __init__(self, num_replicas: int) -> None:
        self.strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])
        with self.strategy.scope():
            self.slope = ringlet.Variable(0.0, name="slope")
            self.offset = ringlet.Variable(0.0, name="offset")
        random = np.random.default_rng(0)
        x = random.uniform(-1, 1, 256)
        points = ringlet.data.Dataset.from_tensor_slices((x, 3 * x + 1 + 0.1 * random.standard_normal(256)))
        # A checkpoint saves the iterator's position in the data and the order of shuffling.
        self.data = iter(self.strategy.experimental_distribute_dataset(points.shuffle(256).repeat().batch(16)))
        self.step = ringlet.Variable(0, name="step")
        self.losses: list[float] = []

    def objects(self) -> dict[str, object]:
        """Return the objects of a checkpoint, by name."""
        return {
            "slope": self.slope, "offset": self.offset, "data": self.data, "step": self.step, "losses": self.losses,
        }  # fmt: skip

    def train_step(self) -> None:
        """Take one step of gradient descent on one batch."""

        def replica_step(batch):
            x, y = batch
            replica = ringlet.replica_context()
            error = self.slope * x + self.offset - y
            return replica.all_reduce("mean", [np.mean(error * x), np.mean(error), np.mean(error**2)])

        means = self.strategy.run(replica_step, args=(next(self.data),))
        gradients = self.strategy.experimental_local_results(means)[0]
        self.slope.assign_sub(RATE * gradients[0])
        self.offset.assign_sub(RATE * gradients[1])
        self.losses.append(float(gradients[2]))
        self.step.assign_add(1)


def train(folder: Path, steps: int, num_replicas: int = 2) -> Training:
    """Train up to step number `steps`, counted over all runs."""
    training = Training(num_replicas)
    checkpoint = ringlet.train.Checkpoint(**training.objects())
    manager = ringlet.train.CheckpointManager(
        checkpoint, folder, max_to_keep=3, step_counter=training.step, checkpoint_interval=10
    )
    found = manager.restore_or_initialize()
    print(f"resumed at step {int(training.step)}" if found else "started")
    while int(training.step) < steps:
        training.train_step()
        manager.save()
    manager.save(check_interval=False)
    print(f"step {int(training.step)}: y = {float(training.slope):.3f} x + {float(training.offset):.3f}")
    return training


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the checkpoints")
    parser.add_argument("--steps", type=int, default=100, help="steps of all runs together")
    options = parser.parse_args(arguments)
    train(options.folder, options.steps)


if __name__ == "__main__":
    main()
