"""Train a two-layer network on handwritten digits, data-parallel over the cores of this machine.

    python examples/digits.py                 # all cores, one thread each; writes out/digits.png
    ringlet run -n 2 examples/digits.py       # two processes: the same script, and with one BLAS thread the same bits
    python examples/digits.py --check         # compares the weights of N replicas with those of 1
    python examples/digits.py --small         # a step too small for threads, and why

The gradients are written in NumPy. `replica_step` makes the training data-parallel: it runs once per replica on a
slice of every batch, and adds the gradients of all replicas with one `all_reduce`.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import ringlet


@dataclass(frozen=True)
class Settings:
    """Settings of a training run, except the number of replicas."""

    hidden: int = 5120
    batch: int = 448
    learning_rate: float = 0.002
    momentum: float = 0.9
    epochs: int = 40
    dtype: str = "float32"
    seed: int = 0


SMALL = {"hidden": 32, "batch": 32, "learning_rate": 0.05}
CHECK_EPOCHS = 5
CHECK_LIMIT = 1e-12
SHORT_STEP_SECONDS = 0.005

console = Console(highlight=False, soft_wrap=True)


# --- data and model: plain NumPy --------------------------------------------------------------------------------------


def load_data(settings):
    """Return images and labels as (training, test): the last 20 % of a seeded permutation are the test."""
    digits = load_digits()
    order = np.random.default_rng(settings.seed).permutation(len(digits.target))
    images, labels = (digits.data[order] / 16).astype(settings.dtype), digits.target[order]
    cut = len(labels) * 4 // 5
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def initial_weights(settings, pixels=64, classes=10):
    rng = np.random.default_rng(settings.seed + 1)
    w1 = rng.standard_normal((pixels, settings.hidden)) / 2
    w2 = rng.standard_normal((settings.hidden, classes)) / np.sqrt(settings.hidden)
    weights = {"w1": w1, "b1": np.zeros(settings.hidden), "w2": w2, "b2": np.zeros(classes)}
    return {name: w.astype(settings.dtype) for name, w in weights.items()}


def forward(weights, images):
    hidden = images @ weights["w1"]
    hidden += weights["b1"]
    np.logaddexp(hidden, 0, out=hidden)  # softplus, a smooth rectifier
    return hidden, hidden @ weights["w2"] + weights["b2"]


def loss_and_gradients(weights, images, labels):
    """Return the cross-entropy and its gradients, summed (not averaged) over the images."""
    hidden, scores = forward(weights, images)
    rows = np.arange(len(labels))
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    totals = probabilities.sum(axis=1, keepdims=True)
    loss = (np.log(totals[:, 0]) - scores[rows, labels]).sum()

    d_scores = probabilities / totals
    d_scores[rows, labels] -= 1
    d_hidden = d_scores @ weights["w2"].T
    d_hidden *= -np.expm1(-hidden)  # the derivative of softplus, from its value
    return loss, {
        "w1": images.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_scores,
        "b2": d_scores.sum(axis=0),
    }


# --- data-parallel training -------------------------------------------------------------------------------------------


def replica_step(weights, images, labels):
    """Run one step of a replica on its slice of the batch; return the sums and the seconds of communication."""
    loss, gradients = loss_and_gradients(weights, images, labels)
    start = perf_counter()
    # Sums and the number of images, not means: slices of different sizes then have the right weights.
    total = ringlet.replica_context().all_reduce(
        ringlet.ReduceOp.SUM, {"loss": loss, "count": np.int64(len(labels)), "gradients": gradients}
    )
    return total, perf_counter() - start


def replica_evaluation(weights, images, labels):
    """Return how many images of its slice a replica classifies correctly."""
    return np.sum(forward(weights, images)[1].argmax(axis=1) == labels)


def make_strategy(replicas):
    """Return a strategy with that many replicas in this process; for None, with those of the cluster in TF_CONFIG."""
    if replicas is None:
        return ringlet.MultiWorkerMirroredStrategy()
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


@dataclass(frozen=True)
class Slices:
    """Dataset of the slices that the replicas of one process get of every batch, in replica order."""

    batches: ringlet.data.Dataset
    context: ringlet.data.InputContext

    def __iter__(self):
        total, processes = self.context.num_replicas_in_sync, self.context.num_input_pipelines
        first = self.context.input_pipeline_id * total // processes
        for images, labels in self.batches:
            slices = zip(np.array_split(images, total), np.array_split(labels, total), strict=True)
            yield from list(slices)[first : first + total // processes]


class Trainer:
    """Weights, and the strategy that updates them."""

    def __init__(self, settings, replicas):
        self.settings = settings
        self.strategy = make_strategy(replicas)
        self.weights = initial_weights(settings)
        self.velocity = {name: np.zeros_like(w) for name, w in self.weights.items()}

    def distribute(self, images, labels):
        """Return a dataset that yields each batch cut into one slice per replica, reshuffled in each epoch."""
        dataset = ringlet.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shuffle(len(labels), seed=self.settings.seed).batch(self.settings.batch).prefetch(2)
        # Every process reads all batches in one order, so that replica 3 gets the same slice in any process.
        return self.strategy.distribute_datasets_from_function(lambda context: Slices(dataset, context))

    def step(self, batch):
        """Run one step on a distributed batch; return summed loss, number of images, and seconds of communication."""
        results = self.strategy.experimental_local_results(self.strategy.run(replica_step, (self.weights, *batch)))
        total = results[0][0]  # equal on every replica: they share one buffer
        count = int(total["count"])
        for name, gradient in total["gradients"].items():
            self.velocity[name] *= self.settings.momentum
            self.velocity[name] -= self.settings.learning_rate / count * gradient
            self.weights[name] += self.velocity[name]
        return float(total["loss"]), count, sum(seconds for _, seconds in results)

    def count_correct(self, dataset):
        """Return how many images of a distributed dataset the network classifies correctly."""
        counts = (self.strategy.run(replica_evaluation, (self.weights, *batch)) for batch in dataset)
        return sum(int(self.strategy.reduce(ringlet.ReduceOp.SUM, count, axis=None)) for count in counts)


@dataclass(frozen=True)
class Epoch:
    loss: float
    accuracy: float
    images_per_second: float
    communication_share: float


def train_epoch(trainer, training, test, num_test, on_step=lambda: None):
    loss = count = communicating = 0
    start = perf_counter()
    for batch in training:
        step_loss, step_count, step_communicating = trainer.step(batch)
        loss, count, communicating = loss + step_loss, count + step_count, communicating + step_communicating
        on_step()
    seconds = perf_counter() - start
    share = communicating / (seconds * len(trainer.strategy.extended.worker_devices))
    return Epoch(loss / count, trainer.count_correct(test) / num_test, count / seconds, share)


def train(settings, replicas, title):
    """Train from scratch; return the trainer and one `Epoch` per epoch."""
    training, test = load_data(settings)
    trainer = Trainer(settings, replicas)
    datasets = trainer.distribute(*training), trainer.distribute(*test)
    steps = settings.epochs * -(-len(training[1]) // settings.batch)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    history = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=steps)
        for number in range(1, settings.epochs + 1):
            epoch = train_epoch(trainer, *datasets, len(test[1]), lambda: progress.advance(task))
            history.append(epoch)
            progress.console.print(
                f"epoch {number:3}  loss {epoch.loss:.4f}  accuracy {epoch.accuracy:6.2%}  "
                f"{epoch.images_per_second:8.0f} images/s  communication {epoch.communication_share:5.1%}"
            )
    return trainer, history


# --- reports ----------------------------------------------------------------------------------------------------------


def step_seconds(trainer, batch, blas_threads, steps=3):
    sleep(0.2)  # BLAS threads keep a core busy for some time after their last call
    with threadpool_limits(blas_threads, user_api="blas"):
        trainer.step(batch)
        start = perf_counter()
        for _ in range(steps):
            trainer.step(batch)
        return (perf_counter() - start) / steps


def compare_with_one_replica(settings, replicas, rounds=5):
    """Return median seconds of a step: N replicas, 1 replica on one core, 1 replica whose BLAS uses all cores."""
    cores = ringlet.show_config("dicts")["cores"]["count"]
    images, labels = load_data(settings)[0]
    many, one = Trainer(settings, replicas), Trainer(settings, 1)
    cases = [(many, None), (one, 1), (one, cores)]
    batches = {trainer: next(iter(trainer.distribute(images, labels))) for trainer in (many, one)}
    # In alternation, so that other load on the machine affects all three equally.
    measured = [[step_seconds(t, batches[t], blas) for t, blas in cases] for _ in range(rounds)]
    return [median(column) for column in zip(*measured, strict=True)]


def report_speed(settings, replicas):
    many, one, one_with_blas = compare_with_one_replica(settings, replicas)
    console.print(f"\na step of {settings.batch} images:")
    console.print(f"{replicas} replicas".rjust(30), f"{many * 1e3:9.2f} ms")
    for name, seconds in (("1 replica, one core", one), ("1 replica, BLAS on all cores", one_with_blas)):
        console.print(name.rjust(30), f"{seconds * 1e3:9.2f} ms   speed-up {seconds / many:.2f}")
    if one < SHORT_STEP_SECONDS and many > one:
        console.print(
            f"\nThreads cannot help here: a step takes {one * 1e3:.2f} ms and is a few dozen NumPy calls, each too "
            "short for another replica to use the interpreter meanwhile. The replicas take turns, and pay for it. Give "
            "a step more work: a larger batch, or a wider layer."
        )


def save_figure(history, path):
    epochs = range(1, len(history) + 1)
    figure = Figure(figsize=(7, 4), layout="constrained")
    losses = figure.add_subplot(xlabel="epoch", ylabel="training loss", yscale="log")
    losses.xaxis.get_major_locator().set_params(integer=True)
    lines = losses.plot(epochs, [e.loss for e in history], ".-", color="tab:blue", label="training loss")
    accuracies = losses.twinx()
    accuracies.set(ylabel="test accuracy (%)")
    lines += accuracies.plot(epochs, [e.accuracy * 100 for e in history], ".-", color="tab:orange", label="accuracy")
    losses.legend(handles=lines, loc="center right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    console.print(f"\ntraining curve: {path}")


def check(settings, replicas):
    """Return whether N replicas and 1 replica end with the same weights, after the same global batches in float64."""
    settings = replace(settings, dtype="float64", epochs=CHECK_EPOCHS)
    weights = [train(settings, n, counted(n))[0].weights for n in (1, replicas)]
    largest = max(np.abs(w).max() for w in weights[0].values())
    difference = max(np.abs(weights[0][name] - weights[1][name]).max() for name in weights[0]) / largest
    passed = difference <= CHECK_LIMIT
    console.print(
        f"\n1 replica and {counted(replicas)}, {CHECK_EPOCHS} epochs: largest difference of weights "
        f"{difference:.1e} of the largest weight, allowed {CHECK_LIMIT:.0e}: {'passed' if passed else 'FAILED'}"
    )
    return passed


def fingerprint(weights):
    """Return a short hash of the bits of all weights."""
    return sha256(b"".join(weights[name].tobytes() for name in sorted(weights))).hexdigest()[:16]


def counted(replicas):
    if replicas is None:
        return "all replicas"
    return f"{replicas} replica" + "s" * (replicas != 1)


def whole_number(least):
    """Return an argparse type for whole numbers of at least `least`."""

    def read(text):
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
        return int(text)

    return read


def figure_path(text):
    """Argparse type of a writable figure path; a name without a suffix gets .png."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder: give the name of a file in it, as in {path / 'a.png'}")
    if path.suffix in ("", "."):
        path = path.with_name(path.name.rstrip(".") + ".png")
    supported = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in supported:
        raise argparse.ArgumentTypeError(
            f"cannot draw a {path.suffix} file; one of {', '.join(sorted(supported))} can be"
        )
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise argparse.ArgumentTypeError(f"cannot write into {folder}")
    return path


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=whole_number(1), help="default: all cores, at least 2")
    parser.add_argument("--epochs", type=whole_number(1), default=Settings.epochs, help="default: %(default)s")
    seed_help = "of the split, the weights and the order; default: %(default)s"
    parser.add_argument("--seed", type=whole_number(0), default=Settings.seed, help=seed_help)
    parser.add_argument("--out", type=figure_path, default="out/digits.png", help="figure; default: %(default)s")
    parser.add_argument("--small", action="store_true", help="a narrow layer and small batches")
    parser.add_argument("--check", action="store_true", help=f"compare with 1 replica: {CHECK_EPOCHS} epochs, float64")
    options = parser.parse_args(arguments)
    settings = Settings(epochs=options.epochs, seed=options.seed, **(SMALL if options.small else {}))
    if options.replicas and "TF_CONFIG" in os.environ:
        parser.error("argument --replicas: use `ringlet run --replicas` in a process of a cluster")
    if options.replicas and options.replicas > settings.batch:
        parser.error(
            f"argument --replicas: expected at most {settings.batch}, the images of a batch, got {options.replicas}"
        )
    return options, settings


def main(arguments=None):
    options, settings = parse_arguments(arguments)
    cores = ringlet.show_config("dicts")["cores"]["count"]
    replicas = options.replicas or min(max(2, cores), settings.batch)
    if "TF_CONFIG" in os.environ:  # one process of several: only the chief prints
        replicas, console.quiet = None, not ringlet.is_chief()
    if options.check:
        return 0 if check(settings, replicas) else 1
    trainer, history = train(settings, replicas, counted(replicas))
    console.print(f"\nfingerprint of the weights: {fingerprint(trainer.weights)}")
    if replicas is not None and replicas > 1:
        report_speed(settings, replicas)
    if ringlet.is_chief():
        save_figure(history, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
