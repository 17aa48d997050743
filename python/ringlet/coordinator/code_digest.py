"""Code digest: detects that two processes have different code for a function that is pickled by name."""

from __future__ import annotations

import hashlib
import importlib.machinery
import inspect
import sys
import types
from typing import Any


def code_digest(function: Any) -> str:
    """Return a digest of the code of a function, after unwrapping it.

    The digest is empty for objects that are not Python functions, and for functions of modules that Python's own loader
    has not loaded, such as test modules, which pytest rewrites.
    """
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    spec = getattr(module, "__spec__", None)
    if code is None or spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
        return ""
    return hashlib.blake2b(_described(code).encode(), digest_size=16).hexdigest()


def _described(code: types.CodeType) -> str:
    return repr((code.co_code, code.co_names, code.co_varnames, [_constant(value) for value in code.co_consts]))


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _described(value)
    # Sorted, because the order of a set differs between processes.
    return repr(sorted(map(_constant, value)) if isinstance(value, frozenset) else value)
