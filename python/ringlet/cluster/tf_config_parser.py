"""TF_CONFIG parser: reads the environment variable ``TF_CONFIG``. Errors name the faulty value."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.cluster_spec_parser import read_jobs
from ringlet.cluster.config_errors import (
    ABSENT,
    ClusterConfigJSONError,
    ClusterConfigTypeError,
    Fault,
    corrected,
    shown,
)
from ringlet.errors import ClusterConfigError

_EXAMPLE = {
    "cluster": {"worker": ["localhost:2222", "localhost:2223"]},
    "task": {"type": "worker", "index": 0},
}
# The keys that TensorFlow, its estimators and Google's training services write; other keys may be misspelled.
_KEYS = {"cluster", "task", "environment", "rpc_layer", "session_master", "eval_session_master", "master", "service"}
_KEYS |= {"job", "model_dir"}
_SYNONYMS = {"index": ("id", "task_id", "rank")}  # wrong keys that do not resemble the correct key
_LONGEST_EXAMPLE = 400  # longest correction in a message, in characters; a longer one is replaced by an example


class TFConfig:
    """A parsed ``TF_CONFIG``, created by `TFConfig.of`.

    As in TensorFlow, each property validates only its own value: a wrong task does not prevent reading the cluster.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._whole = self._parsed()

    @staticmethod
    @functools.lru_cache(maxsize=4)
    def of(text: str) -> TFConfig:
        """Parse the value of ``TF_CONFIG``; the last four results are cached."""
        return TFConfig(text)

    @property
    def has_cluster(self) -> bool:
        """Whether the text has a cluster, which may be empty."""
        return "cluster" in self._whole

    @functools.cached_property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty if the text has neither a cluster nor unknown keys, which raise an error."""
        if "cluster" not in self._whole:
            self._check_spelling("cluster", [], self._whole, _KEYS)
            if unknown := sorted(self._whole.keys() - _KEYS):
                raise self.error_of(
                    Fault("the cluster is missing", "'cluster' and 'task'", [unknown[0]], found=unknown)
                )
            return ClusterSpec({})
        try:
            jobs = read_jobs(self._whole["cluster"])
        except Fault as fault:
            raise self.error_of(fault.below("cluster")) from None
        return ClusterSpec._of(jobs)

    @functools.cached_property
    def task_type(self) -> str | None:
        """The job of the task; None if the text does not name it."""
        value = self._task_value("type")
        if value is None:
            return None
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return str(value)
        raise self._type_error("the type of a task must be a string", '"worker", for example', ["task", "type"], value)

    @functools.cached_property
    def task_id(self) -> int | None:
        """The index of the task; None if the text does not give it."""
        value = self._task_value("index")
        keys = ["task", "index"]
        allowed = "an integer: 0, 1, 2 and so on for the tasks of a job"
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise self._type_error("the index of a task must be a number", allowed, keys, value)
        try:
            index = int(value)
        except (ValueError, OverflowError) as error:
            raise self.error_of(Fault(str(error)[:100], allowed, keys, found=value, instead=0)) from None
        if index != value and not isinstance(value, str):
            raise self.error_of(Fault(f"task {value} does not exist", allowed, keys, found=value, instead=index))
        return index

    def text_of(self, key: str) -> str | None:
        """Return a string such as ``rpc_layer`` or ``session_master``; None if it is not given."""
        value = self._whole.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self._type_error(f"{key} must be a string", "a string", [key], value)

    def no_task(self, message: str, key: str, found: object) -> ClusterConfigError:
        """Return the error for a task that is not in the cluster; `key` is its faulty entry, "type" or "index"."""
        spec = self.cluster_spec
        if key == "type":
            options: list[Any] = spec.jobs
        else:
            options = spec.task_indices(str(self.task_type))
        names = ", ".join(shown(option) for option in options[:8]) or "none, as there are no tasks"
        more = f" and {len(options) - 8} more" if len(options) > 8 else ""
        fault = Fault(
            message,
            names + more,
            ["task", key],
            found=ABSENT if found is None else found,
            instead=options[0] if options else ABSENT,
        )
        return self.error_of(fault)

    def error_of(self, fault: Fault) -> ClusterConfigError:
        """Return the error for a fault in this configuration, with a correction if it is known and short."""
        better = corrected(self._whole, fault) if hasattr(self, "_whole") else ABSENT
        if better is ABSENT or len(self._text) > _LONGEST_EXAMPLE:
            return fault.as_error("TF_CONFIG", f"For example: {_shown(_EXAMPLE)}")
        task = better.get("task")
        if fault.renamed is not ABSENT and isinstance(task, dict) and task.get("type") == fault.keys[-1]:
            better["task"] = task | {"type": fault.renamed}
        return fault.as_error("TF_CONFIG", f"{_heading(better, fault)}: {_shown(better)}")

    def _task_value(self, name: str) -> Any:
        if "task" not in self._whole:
            self._check_spelling("task", [], self._whole, _KEYS)
        task = self._as_object(self._whole.get("task", {}), ["task"])
        if name not in task:
            self._check_spelling(name, ["task"], task, {"type", "index"})
        return task.get(name)

    def _check_spelling(self, name: str, keys: Sequence[str], holder: dict[str, Any], known: AbstractSet[str]) -> None:
        """Raise an error if `holder`, the object at `keys`, has a key that resembles the missing `name`."""
        near = difflib.get_close_matches(name, holder.keys() - known, n=1)
        near = near or [key for key in _SYNONYMS.get(name, ()) if key in holder]
        if near:
            renamed: Any = {name if key == near[0] else key: value for key, value in holder.items()}
            fault = Fault(f"{shown(near[0])} is unknown, the nearest key is {name!r}", repr(name), [*keys, name])
            better = f"Corrected: {_shown(self._whole | {keys[0]: renamed} if keys else renamed)}"
            raise fault.as_error("TF_CONFIG", better if len(self._text) <= _LONGEST_EXAMPLE else "")

    def _parsed(self) -> dict[str, Any]:
        repeated: list[str] = []
        try:
            whole = json.loads(self._text, object_pairs_hook=functools.partial(_as_dict, repeated))
        except json.JSONDecodeError as error:
            raise ClusterConfigJSONError(error.msg, error.doc, error.pos, self._json_advice(error.pos)) from None
        except (RecursionError, ValueError) as error:
            raise ClusterConfigError(
                f"TF_CONFIG, at $: {str(error)[:100]}; allowed: an object with a cluster and a task. "
                f"For example: {_shown(_EXAMPLE)}"
            ) from None
        whole = self._as_object(whole, [])
        if repeated:
            raise self._repeated(whole, repeated[0])
        return whole

    def _as_object(self, value: object, keys: Sequence[object]) -> dict[str, Any]:
        """Return a value that must be an object; an empty list counts as an empty object, as in TensorFlow."""
        if value == []:
            return {}
        if isinstance(value, dict):
            return value
        what = "a task" if keys else "the configuration"
        allowed = '{"type": "worker", "index": 0}, for example' if keys else 'an object with "cluster" and "task"'
        raise self._type_error(f"{what} must be an object", allowed, keys, value)

    def _type_error(self, text: str, allowed: str, keys: Sequence[object], found: object) -> ClusterConfigError:
        example: Any = _EXAMPLE
        for key in keys:
            example = example.get(key, "grpc")
        fault = Fault(
            text, allowed, keys, found="null" if found is None else found, instead=example, kind=ClusterConfigTypeError
        )
        return self.error_of(fault)

    def _json_advice(self, position: int) -> str:
        if not self._text.strip():
            return f"TF_CONFIG is empty: unset it for a program of one process. For example: {_shown(_EXAMPLE)}"
        near = self._text[max(0, position - 20) : position + 20]
        quotes = "; JSON requires double quotes" if "'" in near else ""
        return (
            f"TF_CONFIG, at $: found {near!r} there; allowed: JSON, with a cluster and a task{quotes}. "
            f"For example: {_shown(_EXAMPLE)}"
        )

    def _repeated(self, whole: dict[str, Any], name: str) -> ClusterConfigError:
        keys = _place_of(whole, name)
        fault = Fault(
            f"the name {shown(name)} occurs twice in one object, so that one of its values would be lost",
            "each name once",
            keys,
            found=name,
        )
        return fault.as_error("TF_CONFIG", f"For example: {_shown(_EXAMPLE)}")


class _Repeating(dict[str, Any]):
    """A JSON object in which a name occurs twice."""


def _as_dict(repeated: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    repeated.append(next(name for i, name in enumerate(names) if name in names[:i]))
    return _Repeating(found)


def _place_of(whole: object, name: str) -> list[object]:
    """Return the keys that lead to a name that occurs twice in its object."""
    waiting: list[tuple[list[object], object]] = [([], whole)]
    while waiting:
        keys, value = waiting.pop()
        if isinstance(value, _Repeating) and name in value:
            return [*keys, name]
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [([*keys, key], item) for key, item in inner]
    return [name]


def _heading(config: dict[str, Any], fault: Fault) -> str:
    """Return the text that precedes a corrected configuration in a message.

    If the job of the task has several tasks, the correct index is unknown, so the correction is only an example.
    """
    task, cluster = config.get("task"), config.get("cluster")
    if fault.keys not in (("task",), ("task", "index")) or not isinstance(task, dict) or not isinstance(cluster, dict):
        return "Corrected"
    job = str(task.get("type"))
    tasks = cluster.get(job)
    if not isinstance(tasks, (list, dict)) or len(tasks) < 2:
        return "Corrected"
    return f"Give each task its own index. For {job} {task.get('index')}"


def _shown(config: object) -> str:
    return f"TF_CONFIG='{json.dumps(config)}'"
