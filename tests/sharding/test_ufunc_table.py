"""The table of what runs in place of ufuncs' methods."""

from __future__ import annotations

import numpy as np

from ringlet.sharding import ufunc_table
from ringlet.sharding.ufunc_table import handler_of, implements_ufunc


def test_a_ufunc_of_its_own_goes_before_what_is_for_all(monkeypatch):
    handler_of(np.add, "__call__")  # loads what registers
    monkeypatch.setattr(ufunc_table, "_TABLE", {})
    handler_of.cache_clear()
    try:
        general = implements_ufunc(None, "at")(lambda *_: "general")
        special = implements_ufunc(np.add, "at")(lambda *_: "special")
        assert handler_of(np.add, "at") is special
        assert handler_of(np.subtract, "at") is general
        assert handler_of(np.add, "reduceat") is None
    finally:
        handler_of.cache_clear()


def test_each_ufunc_has_a_handler_of_its_call():
    handlers = [handler_of(ufunc, "__call__") for ufunc in vars(np).values() if isinstance(ufunc, np.ufunc)]
    assert None not in handlers
