"""Check of step function arguments of a TPUStrategy, with the restrictions of TensorFlow's compiler."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringlet import nest
from ringlet.values import DistributedValues

__all__ = ["check_run_arguments"]

# inspect.CO_VARARGS
_HAS_STAR = 0x04


def check_run_arguments(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any] | None) -> None:
    """Raise ValueError for arguments of ``TPUStrategy.run`` that TensorFlow's compiled functions cannot take."""
    if not isinstance(args, (list, tuple)):
        return
    code = getattr(fn, "__code__", None)
    if code is not None and not code.co_flags & _HAS_STAR and not code.co_posonlyargcount:
        # The usual case; the first argument of a method is bound.
        count = code.co_argcount - hasattr(fn, "__self__")
        if len(args) > count:
            raise _too_many(fn, len(args), count)
        return
    parameters = _parameters(fn)
    if parameters is not None:
        _check_parameters(fn, parameters, args, kwargs or {})


def _parameters(fn: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # C functions without a signature
        return None


def _check_parameters(
    fn: Callable[..., Any], parameters: list[inspect.Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    kinds = [parameter.kind for parameter in parameters]
    is_variable = [_begins_with_variable(arg) for arg in args]
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        named = sum(map(_begins_with_variable, kwargs.values()))
        if named or any(is_variable):
            raise ValueError(
                f"Mixing Variables and positional-only parameters not supported by TPUStrategy. Received {named} "
                f"DistributedVariables in **kwargs and {sum(is_variable)} in *args, expected zero for both. Leave the "
                f"'/' out of the parameters of {fn!r}, or use the variable in the function without passing it"
            )
        return
    count = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        if len(args) > count:
            raise _too_many(fn, len(args), count)
    elif any(is_variable[count:]):
        raise ValueError(
            "TPUStrategy.run() cannot handle Variables passed to *args. Either name the function argument, or capture "
            f"the Variable implicitly, by using it in {fn!r} without passing it"
        )
    elif any(is_variable) and len(args) > count:
        raise ValueError(
            "TPUStrategy.run() cannot handle both Variables and a mix of positional args and *args. Either remove the "
            f"*args of {fn!r}, or capture the Variable implicitly, by using it there without passing it"
        )


def _begins_with_variable(arg: Any) -> bool:
    if isinstance(arg, DistributedValues):
        return getattr(arg, "is_distributed_variable", False)
    leaves = nest.flatten_containers(arg)[0] if nest.is_nested(arg) else []
    return bool(leaves) and getattr(leaves[0], "is_distributed_variable", False)


def _too_many(fn: Callable[..., Any], given: int, count: int) -> ValueError:
    return ValueError(
        f"Too many positional arguments passed to call to TPUStrategy.run(): {given} for {fn!r}, which takes {count}"
    )
