"""Restores objects from a checkpoint file: everything is compared and read before anything is changed.

Variables and objects with their own state keep their identity and get new contents. Lists, dictionaries and mutable
dataclasses get new items. Every other object is replaced in its list, dictionary, dataclass or checkpoint.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ringlet.errors import InvalidArgumentError
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers
from ringlet.train.checkpoint_reader import CheckpointFile
from ringlet.train.decoding import (
    Node,
    check_tree,
    children_of_node,
    decode,
    entries_of,
    inner,
    kind_of_node,
    rebuilt,
    saved_variable,
)
from ringlet.train.encoding import Path, name_of, refuse_depth
from ringlet.train.per_worker_state import SavedParts
from ringlet.train.saved_variables import SavedVariable, Sort
from ringlet.train.trackable_types import Group, Kind, children_of, holds_state, is_state, kind_name, kind_of_object
from ringlet.values import Variable
from ringlet.values.variables.atomic_snapshot import write_atomically

# A function that returns the restored object, called after everything was compared.
Maker = Callable[[], Any]
_MOST_SHOWN = 30
_MAY_BE_EMPTY = {Kind.DICT, Kind.LIST}
_SAME_FAMILY = {Kind.LIST, Kind.TUPLE}


def leaf_names(value: Any, path: Path = ()) -> list[str]:
    """Return the names of the stateful objects and plain values in an object, except empty lists and dictionaries."""
    refuse_depth(path)
    kind = kind_of_object(value)
    is_inner = kind is Kind.GROUP or (kind is not None and not is_state(kind) and holds_state(value))
    if kind is None or not (is_inner or not path):
        return [] if _holds_nothing(value) else [name_of(path)]
    return [name for key, child in children_of(value, kind) for name in leaf_names(child, (*path, key))]


def _holds_nothing(value: Any) -> bool:
    """Return whether an object is a list or dictionary without items, or contains only such containers."""
    seen: set[int] = set()  # a list may contain itself
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = kind_of_object(value)
        if kind is None or kind not in _MAY_BE_EMPTY:
            return False
        if id(value) not in seen:
            seen.add(id(value))
            waiting.extend(child for _, child in children_of(value, kind))
    return True


class Restoration:
    """The match between one file and the program's objects. Call :meth:`match` first, then :meth:`read`.

    `matched` are the names in both, `missing` those only in the program, `unexpected` those only in the file.
    """

    def __init__(self, file: CheckpointFile) -> None:
        self.problems: list[str] = []
        self.matched: list[str] = []
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.later: list[tuple[Group, str, Node, Path]] = []
        self._file = file
        self._parts = SavedParts(file.tree)
        workers = current_workers()
        self._worker = 0 if workers is None else workers.worker_index
        self._variables: dict[int, tuple[Variable, SavedVariable, str]] = {}
        self._states: list[tuple[Any, Kind, Maker, str]] = []
        self._commits: list[Callable[[], Any]] = []

    # --- comparing ----------------------------------------------------------------------------------------------------

    def match(self, value: Any, node: Node, path: Path = ()) -> Maker:
        """Compare an object with a node of the file; record how to restore it, or the mismatch.

        The result is a function that returns the restored object: the same object, changed in place, or a new object,
        depending on its kind.
        """
        maker: Maker = check_tree(self._file, lambda: self._match(value, node, path))
        return maker

    def _match(self, value: Any, node: Node, path: Path) -> Maker:
        kind, saved = kind_of_object(value), kind_of_node(node)
        keep = lambda: value  # noqa: E731  # most objects keep their identity
        if kind is Kind.GROUP or (kind is not None and not is_state(kind) and holds_state(value)):
            return self._match_children(value, kind, node, saved, path)
        self.matched.append(name_of(path))
        if is_state(kind) or is_state(saved):
            if kind is not saved:
                self._differ(kind, saved, path)
            elif kind is Kind.VARIABLE:
                self._match_variable(value, self._saved_variable(node, path), path)
            elif kind is not None:
                mine = self._parts.node_for(self._worker, name_of(path), node) if kind is Kind.STATE else node
                self._match_state(value, kind, inner(mine), path)
            return keep
        inside = next((each for each in _kinds_below(node) if is_state(each)), None)
        if inside is not None:
            self._differ(kind, inside, path)
            return keep
        for _ in entries_of(self._file, node):  # raises an error if a tensor is missing
            pass
        return lambda: self._replaced(value, decode(self._file, node, value))

    def _differ(self, kind: Kind | None, saved: Kind, path: Path) -> None:
        here = "an object that cannot be saved" if kind is None else kind_name(kind)
        self.problems.append(f"{name_of(path)}: saved as {kind_name(saved)}, but the program has {here}")

    def _saved_variable(self, node: Node, path: Path) -> SavedVariable:
        """Return the saved variable for this worker; an ON_READ variable has the components of all workers."""
        saved = saved_variable(self._file, self._parts.node_for(self._worker, name_of(path), node))
        if saved.sort is not Sort.ON_READ or self._parts.num_workers == 1:
            return saved
        every = [saved_variable(self._file, each).entries for each in self._parts.nodes(name_of(path), node)]
        return SavedVariable(saved.sort, saved.aggregation, [entry for entries in every for entry in entries])

    def _match_variable(self, variable: Variable, saved: SavedVariable, path: Path) -> None:
        problem = saved.problem_for(variable)
        if problem is not None:
            self.problems.append(f"{name_of(path)}: {problem}")
        _, other, place = self._variables.setdefault(id(variable), (variable, saved, name_of(path)))
        if other.entries != saved.entries:
            self.problems.append(
                f"{name_of(path)}: is the same variable as {place}, but different values were saved for the two"
            )

    def _match_state(self, value: Any, kind: Kind, node: Node, path: Path) -> None:
        if kind is Kind.STATE_DICT:
            self._match_arrays(dict(value.state_dict()), node, path)
        for _ in entries_of(self._file, node):
            pass
        file = self._file  # the closure must not refer to self, which refers to the closure
        self._states.append((value, kind, lambda: decode(file, node), name_of(path)))

    def _match_arrays(self, present: Any, node: Node, path: Path) -> None:
        """Compare the shapes of a state_dict's arrays, because ``load_state_dict`` may not check them."""
        kind, saved = kind_of_object(present), kind_of_node(node)
        if kind is saved and kind in (Kind.TENSOR, Kind.ARRAY):
            (entry,) = entries_of(self._file, node)
            if tuple(present.shape) != entry.shape:
                self.problems.append(
                    f"{name_of(path)}: saved with shape {entry.shape}, but it has shape {tuple(present.shape)} in the "
                    "program"
                )
        elif kind is saved and kind is not None:
            here = dict(children_of(present, kind))
            for key, child in children_of_node(node, saved):
                if key in here:
                    self._match_arrays(here[key], child, (*path, key))

    def _match_children(self, value: Any, kind: Kind | None, node: Node, saved: Kind, path: Path) -> Maker:
        assert kind is not None  # only nodes of a known kind have children
        if kind is not saved and not {kind, saved} <= _SAME_FAMILY:
            self._differ(kind, saved, path)
            return lambda: value
        here, there = dict(children_of(value, kind)), dict(children_of_node(node, saved))
        makers: dict[Any, Maker] = {}
        for key, child in here.items():
            if key in there:
                makers[key] = self._match(child, there[key], (*path, key))
            else:
                self.missing += leaf_names(child, (*path, key))
        for key, child in there.items():
            if key not in here:
                self.unexpected += _node_names(child, (*path, key))
                if isinstance(value, Group):
                    self.later.append((value, key, child, (*path, key)))
        return lambda: self._with_children(value, kind, {key: make() for key, make in makers.items()})

    def check(self, is_strict: bool) -> None:
        """Raise an InvalidArgumentError that lists the mismatches, if any; if strict, these include unmatched names."""
        if not self.problems and not (is_strict and (self.missing or self.unexpected)):
            return
        lines = [*self.problems, *(f"{name}: is not in the file" for name in self.missing)]
        lines += [f"{name}: is in the file, but not in the program" for name in self.unexpected]
        shown = "\n  ".join(lines[:_MOST_SHOWN])
        more = f"\n  and {len(lines) - _MOST_SHOWN} more" if len(lines) > _MOST_SHOWN else ""
        raise InvalidArgumentError(
            f"the checkpoint {self._file.path} cannot be restored, so nothing was changed:\n  {shown}{more}\nCreate "
            "the objects as they were when the checkpoint was saved, or omit "
            f"{'strict=True and ' if is_strict else ''}the objects that differ"
        )

    # --- restoring ----------------------------------------------------------------------------------------------------

    def read(self, maker: Maker) -> Maker:
        """Read all values; return a function that restores everything, or nothing if an object rejects its state."""
        values = [saved.new_value(variable, self._file) for variable, saved, _ in self._variables.values()]
        states = [(value, kind, check_tree(self._file, make), name) for value, kind, make, name in self._states]
        result = check_tree(self._file, maker)

        def change() -> Any:
            self._set_states(states)
            write_atomically(values)
            for commit in self._commits:
                commit()
            return result

        return change

    def _set_states(self, states: list[tuple[Any, Kind, Any, str]]) -> None:
        before: list[tuple[Any, Kind, Any]] = []
        try:
            for value, kind, state, name in states:
                try:
                    before.append((value, kind, _state(value, kind)))
                    _set_state(value, kind, state)
                except Exception as error:
                    error.args = (f"nothing was restored, because {name} failed: {error}", *error.args[1:])
                    raise
        except BaseException:
            for value, kind, state in reversed(before):
                _set_state(value, kind, state)
            raise

    def _replaced(self, value: Any, new: Any) -> Any:
        """Return the value to store in place of `value`.

        If `value` is a mutable container of the same kind as `new`, this is `value` itself, whose items are set at
        commit; for a tuple, a tuple rebuilt from both; otherwise `new`.
        """
        kind = kind_of_object(value)
        if kind is not kind_of_object(new) or kind not in _REFILL:
            return new
        present = dict(children_of(value, kind))
        items = {
            key: self._replaced(present[key], each) if key in present else each for key, each in children_of(new, kind)
        }
        if kind is Kind.TUPLE:
            return _REFILL[kind](value, items)
        if kind is Kind.DATACLASS and _is_frozen(value):
            return new
        self._commits.append(lambda: _REFILL[kind](value, items))
        return value

    def _with_children(self, value: Any, kind: Kind, new: dict[Any, Any]) -> Any:
        """Return a container of stateful objects with the children in `new`; if mutable, it is changed at commit."""
        present = dict(children_of(value, kind))
        changed = {key: each for key, each in new.items() if each is not present[key]}
        if not changed:
            return value
        if kind is Kind.TUPLE:
            return tuple([changed.get(i, each) for i, each in enumerate(value)])
        if kind is Kind.NAMEDTUPLE or (kind is Kind.DATACLASS and _is_frozen(value)):
            return rebuilt(value, {**present, **changed}, kind)
        if kind is Kind.GROUP:
            self._commits.append(lambda: value._replace_values(changed))
        elif kind is Kind.DATACLASS:
            self._commits.append(lambda: _set_fields(value, changed))
        else:
            self._commits.append(lambda: [value.__setitem__(key, each) for key, each in changed.items()])
        return value


def _state(value: Any, kind: Kind) -> Any:
    return value.get_state() if kind is Kind.STATE else copy.deepcopy(value.state_dict())


def _set_state(value: Any, kind: Kind, state: Any) -> None:
    if kind is Kind.STATE:
        value.set_state(state)
    else:
        value.load_state_dict(state)


def _refill_list(value: list[Any], items: dict[int, Any]) -> None:
    value[:] = items.values()


def _refill_dict(value: dict[Any, Any], items: dict[Any, Any]) -> None:
    value.clear()
    value.update(items)


def _set_fields(value: Any, items: dict[str, Any]) -> None:
    for name, each in items.items():
        setattr(value, name, each)


# Functions that replace the items of a plain container in place, or return a new tuple.
_REFILL: dict[Kind, Callable[[Any, dict[Any, Any]], Any]] = {
    Kind.LIST: _refill_list,
    Kind.DICT: _refill_dict,
    Kind.DATACLASS: _set_fields,
    Kind.TUPLE: lambda _, items: tuple(items.values()),
}


def _is_frozen(value: Any) -> bool:
    return bool(type(value).__dataclass_params__.frozen)


def _kinds_below(node: Node) -> list[Kind]:
    kind = kind_of_node(node)
    return [kind, *(each for _, child in children_of_node(node, kind) for each in _kinds_below(child))]


def _node_names(node: Node, path: Path) -> list[str]:
    """Return the result of :func:`leaf_names` for the object that was saved as this node."""
    kind, *below = _kinds_below(node)
    if {kind, *below} <= _MAY_BE_EMPTY:
        return []
    if kind is Kind.GROUP or any(is_state(each) for each in below):
        return [name for key, child in children_of_node(node, kind) for name in _node_names(child, (*path, key))]
    return [name_of(path)]
