"""Aliases without "experimental" for methods with TensorFlow's experimental names."""

from __future__ import annotations


class PlainNames:
    """Base class that updates aliases such as ``local_results = experimental_local_results``.

    When a subclass overrides the method, its alias refers to the overriding method.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        parent = super(cls, cls)
        for name, member in list(vars(cls).items()):
            plain = name.removeprefix("experimental_")
            if plain not in vars(cls) and getattr(parent, plain, None) is getattr(parent, name, cls):
                setattr(cls, plain, member)
