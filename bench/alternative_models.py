"""The jobs of ``bench.alternatives`` as they are written without Ringlet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from examples import digits

__all__ = [
    "PlainTraining",
    "count_regions",
    "jax_bootstrap",
    "jax_training",
    "numba_bootstrap",
    "numba_regions",
    "numba_training",
    "torch_bootstrap",
    "torch_training",
    "use_one_blas_thread",
]


def use_one_blas_thread() -> None:
    """Limit the linear algebra of this process to one thread, because the processes share the cores."""
    threadpool_limits(1, user_api="blas")


def count_regions(images: np.ndarray) -> np.ndarray:
    """Return how many connected regions of ink each image has, by a flood fill in plain Python."""
    return np.array([_regions(image.tolist()) for image in images])


def _regions(ink: list[list[bool]]) -> int:
    left = {(row, column) for row, line in enumerate(ink) for column, is_ink in enumerate(line) if is_ink}
    count = 0
    while left:
        count += 1
        front = [left.pop()]
        while front:
            row, column = front.pop()
            for near in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if near in left:
                    left.remove(near)
                    front.append(near)
    return count


class PlainTraining:
    """The network of ``examples/digits.py``, with gradients computed in slices by a map and added by one thread."""

    def __init__(self, settings: Any, images: np.ndarray, labels: np.ndarray, num_slices: int) -> None:
        self.settings = settings
        self.weights = digits.initial_weights(settings)
        self.velocity = {name: np.zeros_like(w) for name, w in self.weights.items()}
        self.num_slices = num_slices
        self.use(images, labels)

    def use(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Use a batch in the next steps."""
        split = (np.array_split(values, self.num_slices) for values in (images, labels))
        self.slices, self.count = list(zip(*split, strict=True)), len(images)

    def step(self, mapper: Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]) -> np.ndarray:
        """Train one step; return the weights of the first layer."""
        parts = [gradients for _, gradients in mapper(partial(_gradients, self.weights), self.slices)]
        for name in self.weights:
            self.velocity[name] *= self.settings.momentum
            self.velocity[name] -= self.settings.learning_rate / self.count * sum(part[name] for part in parts)
            self.weights[name] += self.velocity[name]
        return self.weights["w1"]


def _gradients(weights: dict[str, np.ndarray], images_and_labels: tuple[np.ndarray, np.ndarray]) -> Any:
    return digits.loss_and_gradients(weights, *images_and_labels)


# --- numba ------------------------------------------------------------------------------------------------------------


def numba_bootstrap(groups: Sequence[np.ndarray], resamples: int) -> Callable[[], Any]:
    """Return a call that bootstraps the medians in loops that numba compiles, over all cores."""
    import numba

    @numba.njit(parallel=True)
    def medians(group: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        found = np.empty((len(drawn), len(group)))
        for resample in numba.prange(len(drawn)):
            for feature in range(len(group)):
                found[resample, feature] = np.median(group[feature][drawn[resample]])
        return found

    generator = np.random.default_rng(0)

    def call() -> Any:
        malignant, benign = (
            medians(group, generator.integers(group.shape[1], size=(resamples, group.shape[1]))) for group in groups
        )
        return malignant - benign

    call()  # compiles
    return call


def numba_regions(images: np.ndarray) -> Callable[[], Any]:
    """Return a call of `count_regions` that numba compiles, over all cores."""
    import numba

    @numba.njit
    def regions(ink: np.ndarray, front: np.ndarray) -> int:
        count = 0
        for start in range(ink.size):
            if not ink.flat[start]:
                continue
            count += 1
            ink.flat[start] = False
            front[0], size = start, 1
            while size:
                size -= 1
                row, column = divmod(front[size], ink.shape[1])
                for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    r, c = row + down, column + right
                    if 0 <= r < ink.shape[0] and 0 <= c < ink.shape[1] and ink[r, c]:
                        ink[r, c] = False
                        front[size] = r * ink.shape[1] + c
                        size += 1
        return count

    @numba.njit(parallel=True)
    def counts(images: np.ndarray) -> np.ndarray:
        found = np.empty(len(images), np.int64)
        for image in numba.prange(len(images)):
            found[image] = regions(images[image].copy(), np.empty(images[image].size, np.int64))
        return found

    return lambda: counts(images)


def numba_training(settings: Any, images: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Return a training step whose loops over elements numba compiles, over all cores; products are those of NumPy."""
    import numba

    @numba.njit(parallel=True)
    def softplus(values: np.ndarray, bias: np.ndarray) -> None:
        for row in numba.prange(len(values)):
            for column in range(values.shape[1]):
                value = values[row, column] + bias[column]
                values[row, column] = max(value, np.float32(0)) + np.log1p(np.exp(-abs(value)))

    @numba.njit(parallel=True)
    def multiply_by_derivative(gradients: np.ndarray, values: np.ndarray) -> None:
        for row in numba.prange(len(values)):
            for column in range(values.shape[1]):
                gradients[row, column] *= -np.expm1(-values[row, column])

    def gradients(weights: dict[str, np.ndarray], batch: tuple[np.ndarray, np.ndarray]) -> Any:
        images, labels = batch
        rows = np.arange(len(labels))
        hidden = images @ weights["w1"]
        softplus(hidden, weights["b1"])
        scores = hidden @ weights["w2"] + weights["b2"]
        scores -= scores.max(axis=1, keepdims=True)
        probabilities = np.exp(scores)
        d_scores = probabilities / probabilities.sum(axis=1, keepdims=True)
        d_scores[rows, labels] -= 1
        d_hidden = d_scores @ weights["w2"].T
        multiply_by_derivative(d_hidden, hidden)
        return None, {
            "w1": images.T @ d_hidden,
            "b1": d_hidden.sum(axis=0),
            "w2": hidden.T @ d_scores,
            "b2": d_scores.sum(axis=0),
        }

    training = PlainTraining(settings, images, labels, 1)
    return lambda: training.step(lambda _, parts: [gradients(training.weights, part) for part in parts])


# --- PyTorch and JAX --------------------------------------------------------------------------------------------------


def torch_bootstrap(groups: Sequence[np.ndarray], resamples: int, threads: int) -> Callable[[], Any]:
    """Return a call that bootstraps the medians in PyTorch."""
    import torch

    tensors = [torch.tensor(group) for group in groups]

    def call() -> Any:
        torch.set_num_threads(threads)
        drawn = (t[:, torch.randint(t.shape[1], (resamples, t.shape[1]))] for t in tensors)
        malignant, benign = (values.median(-1).values for values in drawn)
        return malignant - benign

    return call


def jax_bootstrap(groups: Sequence[np.ndarray], resamples: int) -> Callable[[], Any]:
    """Return a call that bootstraps the medians in JAX, compiled."""
    import jax
    import jax.numpy as jnp

    arrays = [jnp.asarray(group) for group in groups]

    @jax.jit
    def medians(key: Any) -> Any:
        keys = jax.random.split(key)
        drawn = (
            a[:, jax.random.randint(k, (resamples, a.shape[1]), 0, a.shape[1])]
            for a, k in zip(arrays, keys, strict=True)
        )
        malignant, benign = (jnp.median(values, axis=-1) for values in drawn)
        return malignant - benign

    return lambda: medians(jax.random.key(0)).block_until_ready()


def torch_training(settings: Any, images: np.ndarray, labels: np.ndarray, threads: int) -> Callable[[], Any]:
    """Return a call that trains the network one step in PyTorch."""
    import torch

    weights = {name: torch.tensor(w, requires_grad=True) for name, w in digits.initial_weights(settings).items()}
    optimizer = torch.optim.SGD(weights.values(), settings.learning_rate, settings.momentum)
    x, y = torch.tensor(images), torch.tensor(labels)

    def step() -> Any:
        torch.set_num_threads(threads)
        optimizer.zero_grad()
        hidden = torch.nn.functional.softplus(x @ weights["w1"] + weights["b1"])
        torch.nn.functional.cross_entropy(hidden @ weights["w2"] + weights["b2"], y).backward()
        optimizer.step()

    return step


def jax_training(settings: Any, images: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Return a call that trains the network one step in JAX, compiled."""
    import jax
    import jax.numpy as jnp

    weights = {name: jnp.asarray(w) for name, w in digits.initial_weights(settings).items()}
    state = [weights, {name: jnp.zeros_like(w) for name, w in weights.items()}]
    x, y = jnp.asarray(images), jnp.asarray(labels)

    def loss(w: Any) -> Any:
        scores = jnp.logaddexp(x @ w["w1"] + w["b1"], 0) @ w["w2"] + w["b2"]
        return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(y)), y])

    @jax.jit
    def update(w: Any, velocity: Any) -> Any:
        gradients = jax.grad(loss)(w)
        velocity = {n: settings.momentum * v - settings.learning_rate * gradients[n] for n, v in velocity.items()}
        return {n: w[n] + velocity[n] for n in w}, velocity

    def step() -> Any:
        state[:] = update(*state)
        jax.block_until_ready(state)

    return step
