"""The table of what runs in place of ufuncs' methods."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from ringlet.sharding import Sharding, shard
from ringlet.sharding.execution import ufunc_table
from ringlet.sharding.execution.ufunc_table import handler_of, implements_ufunc


def test_a_ufunc_of_its_own_goes_before_what_is_for_all(monkeypatch):
    handler_of(np.add, "__call__")  # loads what registers
    monkeypatch.setattr(ufunc_table, "_TABLE", {})
    general = implements_ufunc(None, "at")(lambda *_: "general")
    special = implements_ufunc(np.add, "at")(lambda *_: "special")
    assert handler_of(np.add, "at") is special
    assert handler_of(np.subtract, "at") is general
    assert handler_of(np.add, "reduceat") is None


def test_each_ufunc_has_a_handler_of_its_call():
    handlers = [handler_of(ufunc, "__call__") for ufunc in vars(np).values() if isinstance(ufunc, np.ufunc)]
    assert None not in handlers


def test_no_cache_holds_a_ufunc_made_from_a_python_function():
    class Held:
        def __call__(self, value):
            return value

    held = Held()
    released = weakref.ref(held)
    ufunc = np.frompyfunc(held, 1, 1)
    x = shard(np.arange(4), Sharding.tiled((2,)))
    assert list(ufunc(x)) == [0, 1, 2, 3]
    pair = np.frompyfunc(lambda a, b, held=held: held(a) + b, 2, 1)
    assert pair.reduce(x) == 6
    assert pair.outer(x, x).shape == (4, 4)
    del held, ufunc, pair
    gc.collect()
    assert released() is None
