"""Parsing of examples (``tf.train.Example``) into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.data.graph.element_structure import Array
from ringlet.data.readers.example_features import (
    BYTES,
    KIND_NAMES,
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    VarLenRows,
    feature_kind,
)
from ringlet.errors import InvalidArgumentError

Feature = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature
Features = Mapping[str, Feature]

_MISSING = -1


def parse_example(
    serialized: Sequence[bytes] | Array | bytes, features: Features, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse a batch of serialized examples into arrays (``tf.io.parse_example``).

    The messages are parsed in C++; protobuf is not needed. Features that are not in `features` are skipped.

    Parameters
    ----------
    serialized : sequence or array of bytes, shape (examples,)
        A single example is parsed as in `parse_single_example`.
    features : dict
        A `FixedLenFeature`, `FixedLenSequenceFeature` or `VarLenFeature` for each name.
    example_names : object, optional
        Accepted for compatibility with TensorFlow; unused: errors state the number of the example.
    name : str, unused

    Returns
    -------
    dict
        For each name, a read-only array of shape ``(examples, *shape)``, or ``(examples, longest, *shape)`` for a
        sequence; for a `VarLenFeature`, a `VarLenRows`. Bytes are objects of class ``bytes``.

    Raises
    ------
    InvalidArgumentError
        If a message is damaged, a feature without a default value is missing, or the values of a feature have the
        wrong type or number.
    TypeError
        If `serialized` does not hold bytes.

    Examples
    --------
    >>> from ringlet.data import serialize_example
    >>> batch = [serialize_example({"x": [1.5, 2.5], "label": i, "tags": ["a"] * i}) for i in range(3)]
    >>> features = {"x": FixedLenFeature([2], np.float32), "label": FixedLenFeature([], np.int64)}
    >>> parse_example(batch, features)["label"]
    array([0, 1, 2])
    >>> parse_example(batch, {"tags": VarLenFeature(bytes)})["tags"].lengths
    array([0, 1, 2])
    """
    if isinstance(serialized, bytes):
        return parse_single_example(serialized, features)
    messages = _messages(serialized)
    columns = _read(messages, features)
    return {key: _batch(key, features[key], *column) for key, column in columns.items()}


def parse_single_example(
    serialized: bytes, features: Features, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse one serialized example into arrays (``tf.io.parse_single_example``).

    Parsing a batch is faster: ``dataset.batch(size).map(lambda x: parse_example(x, features))``.

    Parameters
    ----------
    serialized : bytes
    features : dict
        A `FixedLenFeature`, `FixedLenSequenceFeature` or `VarLenFeature` for each name.
    example_names : object, unused
    name : str, unused

    Returns
    -------
    dict
        For each name, a read-only array: of the feature's shape, of shape ``(values, *shape)`` for a sequence, or of
        shape ``(values,)`` for a `VarLenFeature`. For shape ``[]``, a scalar or ``bytes``.

    Raises
    ------
    InvalidArgumentError
        If the message is damaged, a feature without a default value is missing, or the values of a feature have the
        wrong type or number.
    TypeError
        If `serialized` is not bytes.

    Examples
    --------
    >>> from ringlet.data import serialize_example
    >>> message = serialize_example({"name": "x", "values": [1, 2, 3]})
    >>> parse_single_example(message, {"name": FixedLenFeature([], bytes), "values": VarLenFeature(np.int64)})
    {'name': b'x', 'values': array([1, 2, 3])}
    """
    columns = _read(_messages([serialized]), features)
    return {key: _single(key, features[key], *column) for key, column in columns.items()}


def decode_example(serialized: bytes) -> dict[str, Any]:
    """Return all features of one serialized example.

    Parameters
    ----------
    serialized : bytes

    Returns
    -------
    dict
        For each name, a vector of int64 or float32, or a list of ``bytes``; for a feature without values, an empty
        list.

    Raises
    ------
    InvalidArgumentError
        If the message is damaged, or a name is not UTF-8.

    Examples
    --------
    >>> from ringlet.data import serialize_example
    >>> decode_example(serialize_example({"label": 3, "word": b"three"}))
    {'label': array([3]), 'word': [b'three']}
    """
    try:
        return {key.decode(): values for key, _, values in _core.read_example(serialized)}
    except InvalidArgumentError as error:
        raise _damaged(error) from None
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"Could not parse example input: the name {error.object!r} is not UTF-8") from None


def _messages(serialized: Any) -> tuple[bytes, ...]:
    messages = tuple(serialized.ravel().tolist() if isinstance(serialized, np.ndarray) else serialized)
    for message in messages:
        if not isinstance(message, bytes):
            raise TypeError(f"serialized examples must be bytes, as from TFRecordDataset, got {message!r}")
    return messages


# The values of all examples, and for each example the number of values, or a negative code if it lacks the feature.
Column = tuple[Any, Array]


def _read(messages: tuple[bytes, ...], features: Features) -> dict[str, Column]:
    for key, feature in features.items():
        if not isinstance(feature, Feature):
            raise TypeError(
                f"features[{key!r}] must be a FixedLenFeature, FixedLenSequenceFeature or "
                f"VarLenFeature, got {feature!r}"
            )
    wanted = [(key, feature_kind(feature.dtype)) for key, feature in features.items()]
    try:
        columns = _core.read_features(messages, wanted)
    except InvalidArgumentError as error:
        raise _damaged(error) from None
    return {key: _checked(key, kind, *column) for (key, kind), column in zip(wanted, columns, strict=True)}


def _damaged(error: InvalidArgumentError) -> InvalidArgumentError:
    return InvalidArgumentError(f"Could not parse example input: {error}. Is this a serialized tf.train.Example?")


def _checked(key: str, kind: int, values: Any, lengths: Array) -> Column:
    """Return the column, with bytes as an array; raise an error if the kind of its values is wrong."""
    if len(lengths) and lengths.min() < _MISSING:
        number = int(lengths.argmin())
        found = KIND_NAMES[_MISSING - int(lengths[number])]
        raise InvalidArgumentError(
            f"Key: {key}, Index: {number}.  Data types don't match. Data type: {found} but expected type: "
            f"{KIND_NAMES[kind]}"
        )
    if kind == BYTES:
        array = np.empty(len(values), object)
        array[:] = values
        values = array
    return values, lengths


def _fixed(key: str, feature: FixedLenFeature, values: Array, lengths: Array) -> Array:
    missing = lengths == _MISSING
    size = feature.size
    if wrong := np.flatnonzero(~missing & (lengths != size)).tolist():
        count = int(lengths[wrong[0]])
        raise InvalidArgumentError(
            f"Key: {key}, Index: {wrong[0]}.  Number of {KIND_NAMES[feature_kind(feature.dtype)]} values != expected.  "
            f"Values size: {count} but output shape: {list(feature.shape)}"
        )
    if missing.any():
        number = int(missing.argmax())
        if feature.default_value is None:
            kind_name = KIND_NAMES[feature_kind(feature.dtype)]
            raise InvalidArgumentError(
                f"Feature: {key} (data type: {kind_name}) is required but could not be found in example {number}. Pass "
                "a default_value if the feature may be missing."
            )
        filled = np.empty((len(lengths), size), feature.dtype)
        filled[~missing] = values.reshape(-1, size) if size else 0
        filled[missing] = feature.default_value.ravel()
        values = filled
    return _sealed(values.reshape(len(lengths), *feature.shape))


def _counts(key: str, feature: FixedLenSequenceFeature, lengths: Array) -> tuple[Array, int]:
    """Return the number of arrays of each example, and the number of values of each array."""
    if not feature.allow_missing:
        raise InvalidArgumentError(
            f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True, for {key}."
        )
    size = int(np.prod(feature.shape, dtype=np.int64))
    present = np.maximum(lengths, 0)
    if wrong := np.flatnonzero(present % size).tolist():
        raise InvalidArgumentError(
            f"Key: {key}, Index: {wrong[0]}.  Number of values {int(present[wrong[0]])} is not a multiple of {size} "
            f"of shape {list(feature.shape)}."
        )
    return present // size, size


def _padded(values: Array, counts: Array, fill: Any) -> Array:
    """Stack rows of the lengths `counts`, padded to the longest."""
    longest = int(counts.max()) if len(counts) else 0
    padded = np.full((len(counts), longest, *values.shape[1:]), fill, values.dtype)
    padded[np.arange(longest) < counts[:, None]] = values
    return _sealed(padded)


def _batch(key: str, feature: Feature, values: Array, lengths: Array) -> Any:
    if isinstance(feature, FixedLenFeature):
        return _fixed(key, feature, values, lengths)
    if isinstance(feature, VarLenFeature):
        counts = np.maximum(lengths, 0)
        return VarLenRows(_padded(values, counts, b"" if values.dtype == object else 0), _sealed(counts))
    counts, size = _counts(key, feature, lengths)
    rows = _padded(values.reshape(-1, size), counts, feature.default_value)
    return rows.reshape(*rows.shape[:2], *feature.shape)


def _single(key: str, feature: Feature, values: Array, lengths: Array) -> Any:
    if isinstance(feature, FixedLenFeature):
        return _fixed(key, feature, values, lengths)[0]
    if isinstance(feature, FixedLenSequenceFeature):
        counts, _ = _counts(key, feature, lengths)
        values = values.reshape(int(counts[0]), *feature.shape)
    return _sealed(values)


def _sealed(array: Array) -> Array:
    array.setflags(write=False)
    return array
