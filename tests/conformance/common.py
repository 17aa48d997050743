"""Recorded cases: reading them, and comparing results with the recorded ones.

Recorded from tensorflow-cpu 2.21.0 (NumPy 2.4, Python 3.11, eager mode, CPU). A case has ``id``, ``group``, ``input``
and ``expect``, which is ``{"ok": value}`` or ``{"error": {"type", "message", "incidental"}}``. Values are plain JSON
and tagged objects: ``{"__array__": [dtype, shape, flat]}`` (dtype "string" is bytes as latin-1 text; a scalar tensor
has shape []), ``{"__tuple__": [...]}``, ``{"__namedtuple__": [name, fields]}``, ``{"__per_replica__": [...]}``,
``{"__mirrored__": [...]}``. An error that is *incidental* is an accident of TensorFlow's code: any exception will do.
"""

from __future__ import annotations

import enum
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from ringlet.values import DistributedValues, Mirrored, PerReplica

# Where the cases are; another recording runs through the same tests.
FOLDER = Path(os.environ.get("RINGLET_ORACLE", Path(__file__).parent / "public"))

DISTRIBUTED = {"__per_replica__": PerReplica, "__mirrored__": Mirrored}
# The order of additions is not promised.
RELATIVE = {"float16": 1e-3}


def load(area: str) -> list[dict[str, Any]]:
    """The cases of one area."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / f"{area}.json").read_text(encoding="utf-8"))["cases"]
    return cases


def case_id(case: dict[str, Any]) -> str:
    return f"{case['group']}-{case['id']}"


# --- reading --------------------------------------------------------------------------------------------------------


def decode(value: Any) -> Any:
    """Convert a recorded value to Python and NumPy objects."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        return decode_array(*value["__array__"])
    if "__tuple__" in value:
        return tuple(decode(item) for item in value["__tuple__"])
    return {key: decode(item) for key, item in value.items()}


def decode_array(dtype: str, shape: list[int], flat: list[Any]) -> np.ndarray[Any, Any]:
    if dtype == "string":
        texts = np.empty(len(flat), object)
        texts[:] = [text.encode("latin-1") for text in flat]
        return texts.reshape(shape)
    if dtype.startswith("complex"):
        return np.array([complex(*map(float, pair)) for pair in flat], dtype).reshape(shape)
    return np.array([float(x) if isinstance(x, str) else x for x in flat], dtype).reshape(shape)


def decode_components(values: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Decode the components for replicas; bare numbers become scalar arrays."""
    return [np.asarray(decode(value)) for value in values]


# --- comparing ------------------------------------------------------------------------------------------------------


def assert_same(expected: Any, found: Any, where: str = "answer") -> None:
    """Assert that a value equals the recorded one, floats to the precision above; exceptions are compared as errors."""
    if isinstance(expected, dict) and "__array__" in expected:
        assert_same_array(decode(expected), expected["__array__"][0], found, where)
    elif isinstance(expected, dict) and expected.keys() & DISTRIBUTED.keys():
        [(tag, components)] = expected.items()
        assert type(found) is DISTRIBUTED[tag], f"{where} is {found!r}"
        assert_same_items(components, found.values, where)
    elif isinstance(expected, dict) and "__namedtuple__" in expected:
        name, fields = expected["__namedtuple__"]
        assert type(found).__name__ == name
        assert_same(fields, found._asdict(), where)
    elif isinstance(expected, dict) and "__tuple__" in expected:
        assert type(found) is tuple, f"{where} is {found!r}"
        assert_same_items(expected["__tuple__"], found, where)
    elif isinstance(expected, dict) and isinstance(found, Exception):
        assert_same_error(expected, found)
    elif isinstance(expected, dict):
        assert isinstance(found, dict), f"{where} is {found!r}"
        assert sorted(found) == sorted(expected), where
        for key, value in expected.items():
            assert_same(value, found[key], f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert type(found) is list, f"{where} is {found!r}"
        assert_same_items(expected, found, where)
    else:
        assert not isinstance(found, DistributedValues), where
        named = f"{type(found).__name__}.{found.name}" if isinstance(found, enum.Enum) else found
        assert named == expected, where


def assert_same_items(expected: list[Any], found: Any, where: str) -> None:
    assert len(found) == len(expected), where
    for i, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert_same(one, other, f"{where}[{i}]")


def assert_same_array(expected: np.ndarray[Any, Any], dtype: str, found: Any, where: str) -> None:
    assert isinstance(found, (np.ndarray, np.generic)), f"{where} is {found!r}"
    assert found.shape == expected.shape, where
    assert found.dtype == expected.dtype, where
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=RELATIVE.get(dtype, 1e-6), err_msg=where)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=where)


def facts(message: str) -> list[str]:
    """The facts in a recorded message: quoted text, names with an underscore, and numbers, in lower case.

    Without any of them, the fact is the first two words, such as "mixing" and "different".
    """
    message = re.sub(r"tf\.Tensor\((.*?), shape=.*?\)", r"\1", message)
    message = re.sub(r"<[^>]*(0xADDR|tf\.|V2)[^>]*>?", "", message)
    message = message.replace("tf.distribute.", "")
    found = re.findall(r"`([^`]+)`|'([^']+)'|\b([a-z]+_[a-z_]+)|(?<![\w.])(-?\d+(?:\.\d+)?)(?![\w])", message)
    told = ["".join(groups).lower() for groups in found]
    return told or [word.strip(".,:") for word in message.lower().split()[:2]]


def is_incidental(expect: dict[str, Any]) -> bool:
    """Whether a case expects an accident of TensorFlow's code, for which any exception will do."""
    return bool(expect.get("error", {}).get("incidental"))


def assert_same_error(expected: dict[str, Any], error: BaseException) -> None:
    """Assert that an error has the recorded type, or a subclass with its name, and states the recorded facts."""
    if expected.get("incidental"):
        return
    names = [base.__name__ for base in type(error).__mro__]
    assert expected["type"] in names, f"{error!r} is no {expected['type']}"
    missing = [fact for fact in facts(expected["message"]) if fact not in str(error).lower()]
    assert missing == [], f"recorded: {expected['message']}\nours: {error}"
