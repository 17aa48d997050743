"""Functions that split and rebuild nodes whose classes need no registration.

*Containers* are the structures of ``tf.nest``: subclasses of lists, tuples, deques and dictionaries, other mappings,
and classes with ``__tf_flatten__``. *Composites* are objects with named fields: dataclasses and attrs classes.
"""

from __future__ import annotations

import collections
import enum
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from optree.utils import total_order_sorted

__all__ = ["Kind", "Rest", "composite_kind", "container_kind"]

# A class with one of these attributes is an array type.
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


class Rest:
    """A node without its children: its type, `names` (field names, keys or metadata), and `extra`, to rebuild it.

    Comparisons ignore `extra`.
    """

    __slots__ = ("extra", "names", "node_type")

    node_type: Any

    def __init__(self, node_type: type[Any], names: Sequence[Any] = (), extra: Any = None) -> None:
        self.node_type = node_type
        self.names = tuple(names)
        self.extra = extra

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rest) and self.node_type is other.node_type and self.names == other.names

    def __hash__(self) -> int:
        return hash((self.node_type, self.names))

    def __repr__(self) -> str:
        return ", ".join(map(str, self.names))


class Kind(NamedTuple):
    """Functions that split an instance into children, rest and names (`take`), and rebuild it (`put`)."""

    take: Callable[[Any], tuple[Sequence[Any], Rest, Sequence[Any]]]
    put: Callable[[Any, Iterable[Any]], Any]


# --- containers -----------------------------------------------------------------------------------------------------


def _take_sequence(instance: Any) -> tuple[Sequence[Any], Rest, Sequence[Any]]:
    children = tuple(instance)
    maxlen = instance.maxlen if isinstance(instance, collections.deque) else None
    attributes = _attributes(instance, ())
    if isinstance(instance, collections.UserList):
        del attributes["data"]  # the children are stored separately
    return children, Rest(type(instance), extra=(maxlen, attributes)), range(len(children))


def _put_sequence(rest: Rest, children: Iterable[Any]) -> Any:
    # Bypasses the constructor of the class, which may interpret its arguments differently.
    maxlen, attributes = rest.extra
    if issubclass(rest.node_type, tuple):
        return _put_tuple(rest.node_type, tuple(children), attributes)
    twin = rest.node_type.__new__(rest.node_type)
    if isinstance(twin, collections.deque):
        collections.deque.__init__(twin, children, maxlen)
    elif isinstance(twin, collections.UserList):
        twin.data = list(children)
    else:
        list.__init__(twin, children)
    return _with_attributes(twin, attributes)


def _put_tuple(node_type: type[Any], children: tuple[Any, ...], attributes: Mapping[str, Any]) -> Any:
    try:
        twin = tuple.__new__(node_type, children)
    except TypeError:  # classes written in C cannot be created this way
        try:
            twin = node_type(children)
        except TypeError:  # a class that accepts only particular contents, such as torch.Size
            return children
    return _with_attributes(twin, attributes)


def _take_mapping(instance: Mapping[Any, Any]) -> tuple[Sequence[Any], Rest, Sequence[Any]]:
    keys = tuple(instance)
    names = tuple(total_order_sorted(keys))
    attributes = _attributes(instance, ()) if isinstance(instance, dict) else {}
    default_factory = instance.default_factory if isinstance(instance, collections.defaultdict) else None
    extra = (keys, default_factory, attributes)
    return [instance[key] for key in names], Rest(type(instance), names, extra), names


def _put_mapping(rest: Rest, children: Iterable[Any]) -> Any:
    keys, default_factory, attributes = rest.extra
    values = dict(zip(rest.names, children, strict=True))
    if not issubclass(rest.node_type, MutableMapping):
        return rest.node_type({key: values[key] for key in keys})
    try:
        twin = rest.node_type()
    except TypeError:  # its constructor requires arguments, which are unknown here
        twin = rest.node_type.__new__(rest.node_type)
    # Attributes first: classes that expose their keys as attributes set them again below.
    _with_attributes(twin, attributes)
    if isinstance(twin, collections.defaultdict):
        twin.default_factory = default_factory
    for key in keys:
        twin[key] = values[key]
    return twin


def _can_be_filled(node_type: type[Any]) -> bool:
    """Return whether an empty mapping of a type can be created."""
    try:
        return len(node_type() if issubclass(node_type, MutableMapping) else node_type({})) == 0
    except Exception:  # the constructor requires arguments, such as the path of a file-backed mapping
        return False


def _take_with_protocol(instance: Any) -> tuple[Sequence[Any], Rest, Sequence[Any]]:
    metadata, children = instance.__tf_flatten__()
    method = inspect.getattr_static(type(instance), "__tf_unflatten__")
    # Stored only if `__tf_unflatten__` is an instance method, because the instance keeps its arrays alive.
    caller = instance if inspect.isfunction(method) else None
    return children, Rest(type(instance), (metadata,), caller), range(len(children))


def _put_with_protocol(rest: Rest, children: Iterable[Any]) -> Any:
    caller = rest.node_type if rest.extra is None else rest.extra
    return caller.__tf_unflatten__(rest.names[0], tuple(children))


_SEQUENCES = (tuple, list, collections.deque, collections.UserList)


def container_kind(node_type: type[Any]) -> Kind | None:
    """Return the functions that split and rebuild a container of a class; None if the class is not a container."""
    if hasattr(node_type, "__tf_flatten__") and hasattr(node_type, "__tf_unflatten__"):
        return Kind(_take_with_protocol, _put_with_protocol)
    if any(hasattr(node_type, name) for name in _ARRAY_PROTOCOLS):
        return None
    if issubclass(node_type, _SEQUENCES):
        return Kind(_take_sequence, _put_sequence)
    if issubclass(node_type, dict) or (issubclass(node_type, Mapping) and _can_be_filled(node_type)):
        return Kind(_take_mapping, _put_mapping)
    return None


# --- composites -----------------------------------------------------------------------------------------------------


def _field_names(node_type: type[Any]) -> tuple[str, ...]:
    fields = getattr(node_type, "__dataclass_fields__", None)
    if fields is not None:
        # Pseudo-fields (ClassVar, InitVar) are in the same table, but are not attributes of an instance.
        return tuple(name for name, field in fields.items() if field._field_type.name == "_FIELD")
    return tuple(attribute.name for attribute in getattr(node_type, "__attrs_attrs__", ()))


def _slots(node_type: type[Any]) -> Iterator[str]:
    for owner in node_type.__mro__:
        slots = vars(owner).get("__slots__", ())
        for name in {slots} if isinstance(slots, str) else {*slots} - {"__dict__", "__weakref__"}:
            private = name.startswith("__") and not name.endswith("__")
            yield f"_{owner.__name__.lstrip('_')}{name}" if private else name


def _attributes(instance: Any, fields: Sequence[str]) -> dict[str, Any]:
    """Return the fields of an instance that are set, then its other attributes, without cached properties."""
    node_type = type(instance)
    held: dict[str, Any] = {}
    for name in (*fields, *_slots(node_type)):
        with suppress(AttributeError):  # the field is not set
            held[name] = getattr(instance, name)
    for name, value in getattr(instance, "__dict__", {}).items():
        if isinstance(name, str) and not isinstance(getattr(node_type, name, None), cached_property):
            held[name] = value
    return held


def _with_attributes(instance: Any, attributes: Mapping[str, Any]) -> Any:
    for name, value in attributes.items():
        # Bypasses the class, which may be frozen or check its attributes.
        object.__setattr__(instance, name, value)
    return instance


def _take_fields(instance: Any) -> tuple[Sequence[Any], Rest, Sequence[Any]]:
    held = _attributes(instance, _field_names(type(instance)))
    return tuple(held.values()), Rest(type(instance), tuple(held)), tuple(held)


def _put_fields(rest: Rest, children: Iterable[Any]) -> Any:
    # Bypasses __init__, which may check its arguments or compute with them, because children need not be arrays.
    try:
        twin = rest.node_type.__new__(rest.node_type)
    except TypeError:
        twin = object.__new__(rest.node_type)
    return _with_attributes(twin, dict(zip(rest.names, children, strict=True)))


def _is_of_this_library(node_type: type[Any]) -> bool:
    module = sys.modules.get(node_type.__module__)
    return module is not None and module.__name__.startswith("ringlet.") and node_type in vars(module).values()


def composite_kind(instance: Any) -> Kind | None:
    """Return functions that split and rebuild a composite; None for objects that are leaves or cannot be rebuilt."""
    node_type = type(instance)
    if not (hasattr(node_type, "__dataclass_fields__") or hasattr(node_type, "__attrs_attrs__")):
        return None
    # Members of an enumeration are compared by identity; classes of this library are values, not structures.
    if issubclass(node_type, enum.Enum) or _is_of_this_library(node_type):
        return None
    if any(hasattr(node_type, name) for name in _ARRAY_PROTOCOLS):
        return None
    kind = Kind(_take_fields, _put_fields)
    try:
        children, rest, _ = kind.take(instance)
        kind.put(rest, children)
    except Exception:  # only its constructor can create instances
        return None
    return kind
