"""OptionGroup: base class of settings with checked names and types."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

G = TypeVar("G", bound="OptionGroup")

Settings = dict[str, tuple[type, Any]]
"""Name of a setting -> (its type, its default). If the default is a group, each object gets a new group."""


class OptionGroup:
    """Base class of settings with checked names and types; a setting may itself be a group.

    A setting without an assigned value has its default, which may be None or a new group.
    """

    _SETTINGS: ClassVar[Settings] = {}

    __slots__ = ("_is_frozen", "_values")

    def __init__(self) -> None:
        object.__setattr__(self, "_is_frozen", False)
        values = {name: start() if isinstance(start, type) else start for name, (_, start) in self._SETTINGS.items()}
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name not in self._SETTINGS:
            raise AttributeError(_unknown(type(self), name), name=name, obj=self)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._SETTINGS:
            raise AttributeError(f"Cannot set the property {name} on {_unknown(type(self), name)}", name=name, obj=self)
        if self._is_frozen:
            raise ValueError(
                "the options of a dataset are read-only. Create an Options object, set its attributes, and call "
                "dataset.with_options(options)."
            )
        kind = self._SETTINGS[name][0]
        if not isinstance(value, kind):
            raise TypeError(f'Property "{name}" must be of type {kind}, got: {value!r} (type: {type(value)})')
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._SETTINGS]

    def merge(self: G, options: G) -> G:
        """Return new options: the settings of `options` that are not defaults, supplemented by those of this object.

        Raises
        ------
        TypeError
            If `options` are of a different class.

        Examples
        --------
        >>> from ringlet.data import AutoShardPolicy, Options
        >>> first, second = Options(), Options()
        >>> first.deterministic = False
        >>> second.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
        >>> first.merge(second)
        Options(deterministic=False, experimental_distribute=DistributeOptions(auto_shard_policy=OFF))
        """
        if type(options) is not type(self):
            raise TypeError(
                f"Could not merge incompatible options of type {type(self)} and {type(options)}: both must be of the "
                "same class, such as ringlet.data.Options."
            )
        merged = type(self)()
        for source in (self, options):
            for name, value in source._made():
                is_group = isinstance(value, OptionGroup)
                merged._values[name] = merged._values[name].merge(value) if is_group else value
        return merged

    def frozen(self: G) -> G:
        """Return a read-only copy.

        Examples
        --------
        >>> from ringlet.data import Options
        >>> Options().frozen().deterministic = True
        Traceback (most recent call last):
        ValueError: the options of a dataset are read-only. Create an Options object, set its attributes, and ...
        """
        copy = type(self)().merge(self)
        for name, value in copy._values.items():
            if isinstance(value, OptionGroup):
                copy._values[name] = value.frozen()
        object.__setattr__(copy, "_is_frozen", True)
        return copy

    def _made(self) -> Iterator[tuple[str, Any]]:
        """Yield the settings that differ from their defaults."""
        for name, (_, start) in self._SETTINGS.items():
            value = self._values[name]
            if value != (start() if isinstance(start, type) else start):
                yield name, value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values == other._values if isinstance(other, OptionGroup) else False

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        shown = {name: value.name if isinstance(value, enum.Enum) else repr(value) for name, value in self._made()}
        made = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"{type(self).__name__}({made})"

    def __copy__(self: G) -> G:
        return type(self)().merge(self)

    def __deepcopy__(self: G, memo: dict[int, Any]) -> G:
        return type(self)().merge(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), dict(self._made()))


def _restored(kind: type[G], made: dict[str, Any]) -> G:
    options = kind()
    for name, value in made.items():
        setattr(options, name, value)
    return options


def _unknown(kind: type[OptionGroup], name: str) -> str:
    return f"{kind.__name__}: it has {', '.join(kind._SETTINGS)}, not {name}."
