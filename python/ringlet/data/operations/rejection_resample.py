"""Dataset.rejection_resample: elements dropped at random for a target distribution of classes.

The ratio of the target share of a class to its share in the input is largest for the most underrepresented class. Let m
be the smallest ratio and M the largest. With probability m, an element is taken from the whole input; otherwise, from
the accepted elements. An element of a class with ratio r is accepted with probability ``(r - m) / (M - m)``. This drops
as few elements as possible.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Array, Nest, as_element
from ringlet.data.operations.common.user_function import check_callable, spread
from ringlet.data.operations.random import seed_entropy
from ringlet.errors import InvalidArgumentError

# Number of elements after which the class counts are updated, and the initial count of each class.
_COUNTED_TOGETHER = 32
_FIRST_COUNT = 10

# Added to a seed, so that acceptance and the choice between the two datasets use different random numbers.
_OTHER_SEED = 2**63


def rejection_resample(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Dataset:
    """Drop and repeat elements at random, so that their classes have the distribution `target_dist`.

    Parameters
    ----------
    class_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns its class, an integer from 0 to
        ``len(target_dist) - 1``.
    target_dist : sequence of float
        The target share of each class. The sum must be 1.
    initial_dist : sequence of float, optional
        The share of each class in the dataset. By default, shares are estimated from the elements read so far, and
        updated every 32 elements.
    seed : int, optional
        The same seed and NumPy version produce the same elements, which differ from TensorFlow's.
    name : str, unused

    Returns
    -------
    Dataset
        Its elements are pairs ``(class, element)``. Elements may be repeated, because the dataset is iterated up to
        three times concurrently: for accepted elements, for all elements, and for the estimate.

    Raises
    ------
    InvalidArgumentError
        If `target_dist` or `initial_dist` does not have one share for each class; during iteration, if `class_func`
        returns a number that is not a class.
    TypeError
        If `class_func` is not callable; during iteration, if `class_func` does not return an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.range(1000).map(lambda x: int(x % 10 == 0))
    >>> pairs = dataset.rejection_resample(lambda label: label, [0.5, 0.5], [0.9, 0.1], seed=1)
    >>> labels = [int(label) for label, _ in pairs]
    >>> 0.4 < sum(labels) / len(labels) < 0.6
    True
    """
    check_callable(class_func, "rejection_resample", "a function that returns the class of an element")
    target = _shares(target_dist, "target_dist")
    seed_entropy(seed)  # raises an error for an invalid seed
    make, count = type(self), len(target)

    def with_class(*element: Nest) -> Nest:
        return _class_of(class_func, element, count), element if len(element) > 1 else element[0]

    def estimated(counts: Array, classes: Array) -> Nest:
        counts = counts + np.bincount(classes, minlength=count)
        accepted, original = acceptance((counts / counts.sum()).astype(np.float32), target)
        return counts, (np.tile(accepted, (len(classes), 1)), np.repeat(original, len(classes)))

    def is_accepted(chances: Nest, number: Any, element: Nest) -> bool:
        return bool(int(number) < chances[0][_class_of(class_func, spread(element), count)] * 2**32)

    if initial_dist is None:
        classes = self.map(lambda *element: _class_of(class_func, element, count)).batch(_COUNTED_TOGETHER)
        chances = classes.scan(np.full(count, _FIRST_COUNT, np.int64), estimated).unbatch()
    else:
        initial = _shares(initial_dist, "initial_dist")
        if len(initial) != count:
            raise InvalidArgumentError(
                f"target_dist and initial_dist must have one probability for each class, got {count} and "
                f"{len(initial)} probabilities"
            )
        accepted, original = acceptance(initial, target)
        if original == 1:
            return self.map(with_class)
        chances = make.from_tensors((accepted, original)).repeat()
    numbers = make.random(None if seed is None else index(seed) + _OTHER_SEED, rerandomize_each_iteration=True)
    kept = make.zip((chances, numbers, self)).filter(is_accepted).map(lambda _chances, _number, x: x)
    kept = kept.map(with_class).prefetch(3)
    if initial_dist is not None and original == 0:
        return kept
    weights = chances.map(lambda _accepted, original: np.array([original, 1 - original]))
    return make.sample_from_datasets([self.map(with_class), kept], weights, seed, stop_on_empty_dataset=True)


def acceptance(initial: Array, target: Array) -> tuple[Array, np.float32]:
    """Return the acceptance probability of each class, and the probability of drawing from the whole input."""
    ratios = target / (initial + np.finfo(np.float32).tiny)
    least = np.float32(ratios.min())
    span = ratios.max() - least
    # If the span is zero, the input has the target distribution, and every element is taken from the whole input.
    return (ratios - least) / (span if span else 1), min(least, np.float32(1))


def _shares(given: Any, name: str) -> Array:
    shares = as_ndarray(as_element(list(given) if isinstance(given, tuple) else given), name)
    is_good = shares.dtype.kind in "biuf" and shares.ndim == 1 and shares.size and (shares >= 0).all()
    if not is_good or abs(shares.sum() - 1) > 1e-3:
        raise InvalidArgumentError(
            f"{name} must hold one probability for each class, and their sum must be 1, got {given!r}. Divide counts "
            "by their sum."
        )
    return shares.astype(np.float32)


def _class_of(class_func: Callable[..., Any], element: tuple[Nest, ...], count: int) -> Any:
    answer = class_func(*element)
    number = np.asarray(answer)
    if number.dtype.kind not in "iu" or number.ndim:
        raise TypeError(f"class_func must return one integer, but returned {answer!r}")
    if not 0 <= number < count:
        raise InvalidArgumentError(f"class_func returned {answer!r}, but target_dist has the classes 0 to {count - 1}")
    return as_element(answer) if isinstance(answer, (np.ndarray, np.generic)) else np.int64(answer)
