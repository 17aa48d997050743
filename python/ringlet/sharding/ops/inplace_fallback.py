"""Functions that write to an array that they are given: the array is gathered, changed, and laid out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import first_given, gathered, implements
from ringlet.sharding.sharded_array import ShardedArray

__all__: list[str] = []


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    name = f"np.{function.__name__}"

    def implementation(array: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(array, ShardedArray):
            return NotImplemented
        array._spaces_to_write()
        whole = np.array(gathered(name, array))
        function(whole, *gathered(name, args), **gathered(name, kwargs))
        array[...] = whole
        return None

    return first_given(function, implementation)


for _function in (np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask):
    implements(_function)(_changed(_function))
