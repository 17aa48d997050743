"""Names that load on first use: ``__getattr__`` and ``__dir__`` of modules, and methods of classes."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # `typing` takes longer to load than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

__all__ = ["MethodOnUse", "list_public", "load_on_use"]


def list_public(module: str) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module, which lists only the names in ``__all__``."""
    return lambda: sorted(sys.modules[module].__all__)


def load_on_use(module: str, homes: Mapping[str, str], advice: Mapping[str, str] = {}) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module whose names load on first use.

    `homes` maps each name to the module that defines it, relative to `module` as in ``from .home import name``,
    followed by ``:original`` if the name differs there. A submodule maps to itself. `advice` maps absent names to the
    remedy in the error.
    """

    def get(name: str) -> object:
        if name not in homes:
            missing = f"module {module!r} has no attribute {name!r}"
            caller = sys._getframe(1)
            # `from package import module` first asks the package for an attribute, in `_handle_fromlist` of importlib.
            if name.startswith("_") or caller.f_code.co_name == "_handle_fromlist":
                raise AttributeError(missing, name=name, obj=sys.modules[module])
            if "errors" in homes:
                importlib.import_module(f".{homes['errors']}", module)  # installs the hook that shortens tracebacks
            from opcode import opmap  # imported here because only misspelt names need it

            near = _nearest(name, {*dir(sys.modules[module]), *advice})
            remedy = advice.get(near, f"write {module}.{near}" if near else "")
            is_import = caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]
            # In an import, Python replaces the text of an AttributeError, unless the name is a module that is loading.
            if is_import and remedy and f"{module}.{name}" not in sys.modules:
                raise ImportError(f"cannot import name {name!r} from {module!r}: {remedy}", name=module)
            # Without `obj`, Python adds no suggestion of its own.
            raise AttributeError(f"{missing}: {remedy}" if remedy else missing, name=name)
        home, _, original = homes[name].partition(":")
        value = importlib.import_module(f".{home}", module)
        if value.__name__ != f"{module}.{name}":
            value = getattr(value, original or name)
        setattr(sys.modules[module], name, value)
        return value

    return get


class MethodOnUse:
    """A method whose function is loaded on first use from the module `home`, where it has the method's name.

    `kind`, such as ``staticmethod``, is applied to the function.
    """

    def __init__(self, home: str, kind: Callable[[Any], Any] | None = None) -> None:
        self._home, self._kind = home, kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        function = getattr(importlib.import_module(self._home), self._name)
        method = function if self._kind is None else self._kind(function)
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


def _nearest(name: str, names: Collection[str]) -> str:
    """Return the name in `names` that is most similar to `name`; an empty string if none is similar."""
    from difflib import get_close_matches  # imported here because only misspelt names need it

    spelt = {known.lower(): known for known in names if not known.startswith("_")}
    near = [name] if name in names else [spelt[key] for key in get_close_matches(name.lower(), spelt, 1, 0.7)]
    return "".join(near)
