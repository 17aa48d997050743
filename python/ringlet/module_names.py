"""``__getattr__`` and ``__dir__`` of modules: names that load on first use, and a list of only the public names."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # `typing` takes longer to load than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["list_public", "load_on_use"]


def list_public(module: str) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module, which lists only the names in ``__all__``."""
    return lambda: sorted(sys.modules[module].__all__)


def load_on_use(module: str, homes: Mapping[str, str], advice: Mapping[str, str] = {}) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module whose names load on first use.

    `homes` maps each name to the module that defines it, relative to `module` as in ``from .home import name``,
    followed by ``:original`` if the name differs there. A submodule maps to itself. `advice` maps absent names to what
    users should write.
    """

    def get(name: str) -> object:
        if name not in homes:
            missing = f"module {module!r} has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(missing, name=name, obj=sys.modules[module])
            if "errors" in homes:
                importlib.import_module(f".{homes['errors']}", module)  # installs the hook that shortens tracebacks
            from opcode import opmap  # imported here because only misspelt names need it

            near = _nearest(name, {*dir(sys.modules[module]), *advice})
            remedy = advice.get(near, f"write {module}.{near}" if near else "")
            caller = sys._getframe(1)
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


def _nearest(name: str, names: Collection[str]) -> str:
    """Return the name closest in spelling to the given one; an empty string if none is similar."""
    from difflib import get_close_matches  # imported here because only misspelt names need it

    spelt = {known.lower(): known for known in names if not known.startswith("_")}
    near = [name] if name in names else [spelt[key] for key in get_close_matches(name.lower(), spelt, 1, 0.7)]
    return "".join(near)
