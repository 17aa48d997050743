"""Adapter for PyTorch tensors in CPU memory."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayAdapter
from ringlet.errors import InvalidArgumentError

Array = np.ndarray[Any, np.dtype[Any]]

# dtypes that Tensor.numpy() does not support are reinterpreted as integers of the same size.
_BITS = {1: "uint8", 2: "int16"}
_ML_NAMES = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


class TorchAdapter(ArrayAdapter):
    """Adapter for torch tensors and parameters: results are plain tensors, each with its own memory."""

    name = "torch.Tensor"
    is_mutable = True

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._ml_names = {getattr(self._torch, name): name for name in _ML_NAMES if hasattr(self._torch, name)}

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Return a NumPy view of a tensor; a lazily conjugated or negated tensor is copied."""
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
        except (TypeError, RuntimeError, ValueError) as error:  # ValueError: uninitialized parameters of lazy modules
            raise InvalidArgumentError(
                f"{name} is a {type(value).__name__} of {value.dtype} that NumPy cannot read: "
                f"{str(error).strip().rstrip('.')}. Pass a plain tensor of a NumPy dtype, of bfloat16 or of float8"
            ) from error

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Return a tensor on the memory of an array."""
        if array.dtype.type.__module__ != "ml_dtypes":
            return self._torch.from_numpy(array)
        bits = self._torch.from_numpy(array.view(_BITS[array.dtype.itemsize]))
        return bits.view(getattr(self._torch, array.dtype.name))

    def note_write(self, value: Any) -> None:
        """Increment the version counter, so that autograd detects that saved values were overwritten."""
        if not value.is_inference():  # inference tensors have no version counter
            self._torch.autograd.graph.increment_version(value)

    def _refuse(self, value: Any, name: str) -> None:
        kind, device = type(value).__name__, value.device.type
        remedy = ""
        if device == "meta":
            remedy = f"is a {kind} on the meta device, which stores no values: create a tensor with values first"
        elif device != "cpu":
            remedy = f"is a {kind} on the device {value.device}: ringlet requires tensors in CPU memory. Pass x.cpu()"
        elif value.is_nested:
            remedy = f"is a {kind} of rows of different lengths (nested): pass x.to_padded_tensor(0)"
        elif value.layout is not self._torch.strided:
            remedy = f"is a {kind} of layout {value.layout}; only strided tensors are supported: pass x.to_dense()"
        elif value.is_quantized:
            remedy = f"is a quantized {kind}, whose integers need a scale to be interpreted: pass x.dequantize()"
        elif value.requires_grad and self._torch.is_grad_enabled():
            remedy = (
                f"is a {kind} that requires gradients, but ringlet calls are not differentiable: pass x.detach(), or "
                "make the call under torch.no_grad()"
            )
        if remedy:
            raise InvalidArgumentError(f"{name} {remedy}")


def _ml_dtype(ml_name: str, name: str) -> np.dtype[Any]:
    try:
        package = importlib.import_module("ml_dtypes")
    except ImportError:
        raise InvalidArgumentError(
            f"{name} is a tensor of {ml_name}, a dtype that NumPy gets from the package ml_dtypes, which is not "
            "installed: pip install ml_dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(package, ml_name))
    return found
