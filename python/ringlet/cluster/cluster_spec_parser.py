"""Cluster spec parser: reads the jobs of a cluster from dictionaries. Errors name the path of a faulty value."""

from __future__ import annotations

import operator
from typing import Any

from ringlet.cluster.config_errors import ABSENT, ClusterConfigTypeError, Fault, shown
from ringlet.errors import ClusterConfigError

# Job name -> task index -> address. Names and addresses are str, or bytes as TensorFlow accepts.
Jobs = dict[Any, dict[int, Any]]

_MOST_INDEX = 2**31 - 1  # largest index in the protocol buffer
_TASKS_ALLOWED = (
    'a list of addresses, as ["host:port"], or a dictionary from task indices to them, as {"0": "host:port"}'
)


def read_jobs(cluster: object) -> Jobs:
    """Read the jobs of a cluster from a dictionary, in the order of its keys.

    The tasks of a job are a list of addresses, or a dictionary from indices to addresses.
    """
    if not isinstance(cluster, dict):
        raise Fault(
            "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
            "`ClusterDef` protocol buffer",
            'a dictionary such as {"worker": ["host:port"]}',
            found=cluster,
            instead={"worker": cluster} if _is_addresses(cluster) else ABSENT,
            kind=ClusterConfigTypeError,
        )
    kinds = {type(_checked_name(name)) for name in cluster}
    if len(kinds) > 1:
        name = next(name for name in cluster if isinstance(name, bytes))
        text = "Job names must be all strings or all bytes"
        raise Fault(text, "a string, such as 'worker'", [name], found=name, kind=ClusterConfigTypeError)
    return {name: _read_tasks(name, tasks) for name, tasks in cluster.items()}


def _is_addresses(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(item, str) for item in value)


def _checked_name(name: object) -> object:
    if not isinstance(name, (str, bytes)):
        raise Fault(
            f"Job name {shown(name)} must be bytes or unicode",
            "a string, such as 'worker'",
            [name],
            found=name,
            kind=ClusterConfigTypeError,
        )
    _check_text("Job name", name, [name])
    return name


def _read_tasks(job: object, tasks: object) -> dict[int, Any]:
    if isinstance(tasks, (list, tuple)):
        return {i: _checked_address(address, [job, i]) for i, address in enumerate(tasks)}
    if not isinstance(tasks, dict):
        raise Fault(
            f"The tasks for job {shown(job)} must be a list or a dictionary from integers to strings",
            _TASKS_ALLOWED,
            [job],
            found=tasks,
            instead=[tasks] if isinstance(tasks, str) else ABSENT,
            kind=ClusterConfigTypeError,
        )
    found: dict[int, Any] = {}
    for key, address in tasks.items():
        index = _index(job, key)
        if index in found:
            raise Fault(
                f"Job {shown(job)} has task {index} twice", "one address for each task", [job, key], found=address
            )
        found[index] = _checked_address(address, [job, key])
    return found


def _index(job: object, key: object) -> int:
    try:
        is_number = isinstance(key, str) or (isinstance(key, float) and key.is_integer())
        index = int(key) if is_number else operator.index(key)  # type: ignore[arg-type,call-overload]
    except (ValueError, TypeError) as error:
        raise Fault(
            f"{_short(error)}. The task indices of job {shown(job)} must be integers",
            "0, 1, 2 and so on for the tasks of a job",
            [job, key],
            found=key,
            kind=ClusterConfigTypeError if isinstance(error, TypeError) else ClusterConfigError,
        ) from None
    if not 0 <= index <= _MOST_INDEX:
        raise Fault(
            f"Task index {index} of job {shown(job)} is out of range", f"0 to {_MOST_INDEX}", [job, key], found=index
        )
    return index


def _short(error: Exception) -> str:
    text = str(error)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _checked_address(address: object, keys: list[object]) -> object:
    if not isinstance(address, (str, bytes)):
        raise Fault(
            f"Task address {shown(address)} must be bytes or unicode",
            'a string, "host:port"',
            keys,
            found=address,
            kind=ClusterConfigTypeError,
        )
    _check_text("Task address", address, keys)
    return address


def _check_text(what: str, text: str | bytes, keys: list[object]) -> None:
    try:
        text.encode() if isinstance(text, str) else text.decode()
    except UnicodeError:
        raise Fault(
            f"{what} {ascii(text)[:100]} is not valid Unicode", "UTF-8 without surrogates", keys, found=text
        ) from None
