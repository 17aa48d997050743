"""Extension of Griffe, which reads the sources for the site: methods that a class takes from other modules.

Griffe takes ``batch = _batch`` and ``range = classmethod(_range)`` in a class for data.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?([^`]+)`")


class Methods(griffe.Extension):
    """Makes such attributes aliases of the functions they name, and turns reStructuredText into Markdown."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the attributes of one class."""
        for name, member in list(cls.members.items()):
            value = None if member.is_alias else getattr(member, "value", None)
            if isinstance(value, griffe.ExprCall) and str(value.function) == "asynchronous":
                text = f"Start `{str(value.arguments[0]).split('.')[-1]}` with the same arguments, and return its work."
                member.docstring = griffe.Docstring(text, parent=member)
            if isinstance(value, griffe.ExprCall) and str(value.function) in ("classmethod", "staticmethod"):
                value = value.arguments[0]
            target = str(value) if isinstance(value, griffe.ExprName) else ""
            if target in cls.members:
                cls.set_member(name, griffe.Alias(name, f"{cls.path}.{target}", parent=cls))
            elif target in cls.module.members and cls.module.members[target].is_alias:
                cls.set_member(name, griffe.Alias(name, cls.module.members[target].target_path, parent=cls))

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Correct the docstring of one object."""
        if obj.docstring is not None:
            text = obj.docstring.value
            if obj.path == "ringlet":  # the rest is a map for `help`
                text = text.split("\n\n")[0]
            obj.docstring.value = ROLE.sub(r"`\1`", text).replace("::\n\n    ", ":\n\n    ")
