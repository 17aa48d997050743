"""PyTorch's tensors in the memory of the CPU."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayKind
from ringlet.errors import InvalidArgumentError

__all__ = ["TorchKind"]

Array = np.ndarray[Any, np.dtype[Any]]

# dtypes that torch's own conversion does not know, and what they are seen as on the way: bits are moved, not values.
_BITS = {1: "uint8", 2: "int16"}
_ML_NAMES = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


class TorchKind(ArrayKind):
    """Tensors of torch: results are tensors whose memory nobody else has, so that each replica may write to its own.

    Parameters go in, too; results are plain tensors.
    """

    name = "torch.Tensor"
    is_mutable = True

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._ml_names = {getattr(self._torch, name): name for name in _ML_NAMES if hasattr(self._torch, name)}

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Give the memory of a tensor as an array; a conjugated or negated view of another tensor is copied.

        Raises
        ------
        InvalidArgumentError
            If the tensor is on another device, has no memory of one value after the other, or needs gradients.
        """
        try:
            self._refuse(value, name)
            tensor = value.detach().resolve_conj().resolve_neg()
            ml_name = self._ml_names.get(tensor.dtype)
            if ml_name is None:
                array: Array = tensor.numpy()
                return array
            bits: Array = tensor.view(getattr(self._torch, _BITS[tensor.element_size()])).numpy()
            return bits.view(_ml_dtype(ml_name, name))
        except InvalidArgumentError:
            raise
        except (TypeError, RuntimeError, ValueError) as error:  # ValueError: parameters of lazy modules
            raise InvalidArgumentError(
                f"{name} is a {type(value).__name__} of {value.dtype} that NumPy cannot read: "
                f"{str(error).strip().rstrip('.')}. Give a plain tensor of one of NumPy's dtypes, of bfloat16 or float8"
            ) from error

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Give a tensor in the memory of an array."""
        if array.dtype.type.__module__ != "ml_dtypes":
            return self._torch.from_numpy(array)
        bits = self._torch.from_numpy(array.view(_BITS[array.dtype.itemsize]))
        return bits.view(getattr(self._torch, array.dtype.name))

    def note_write(self, value: Any) -> None:
        """Count a write, so that autograd refuses to go backward through values that are there no more."""
        if not value.is_inference():  # which count none
            self._torch.autograd.graph.increment_version(value)

    def _refuse(self, value: Any, name: str) -> None:
        kind, device = type(value).__name__, value.device.type
        remedy = ""
        if device == "meta":
            remedy = f"is a {kind} on the device meta, which has a shape and no values: make one with values first"
        elif device != "cpu":
            remedy = (
                f"is a {kind} on the device {value.device}: ringlet works in the memory of the CPU. Give its .cpu()"
            )
        elif value.is_nested:
            remedy = f"is a {kind} of rows of different lengths (nested): give its .to_padded_tensor(0)"
        elif value.layout is not self._torch.strided:
            remedy = (
                f"is a {kind} of the layout {value.layout}, whose values do not follow each other: give its .to_dense()"
            )
        elif value.is_quantized:
            remedy = f"is a quantized {kind}, whose bits alone are no values: give its .dequantize()"
        elif value.requires_grad and self._torch.is_grad_enabled():
            remedy = (
                f"is a {kind} that requires gradients, which cannot be followed through a call of ringlet: give its "
                ".detach(), or make the call under torch.no_grad()"
            )
        if remedy:
            raise InvalidArgumentError(f"{name} {remedy}")


def _ml_dtype(ml_name: str, name: str) -> np.dtype[Any]:
    try:
        package = importlib.import_module("ml_dtypes")
    except ImportError:
        raise InvalidArgumentError(
            f"{name} is a tensor of {ml_name}, which is a dtype of the package ml_dtypes for NumPy, and that is not "
            "installed here: pip install ml_dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(package, ml_name))
    return found
