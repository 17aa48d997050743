"""Namespace of the array API standard, whose creation functions place arrays on a mesh."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, update_wrapper
from typing import Any

import numpy as np

from ringlet.sharding.creation import shard
from ringlet.sharding.layout.mesh import Mesh, NamedSharding
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.resharding.tile_assembly import as_writable
from ringlet.sharding.sharded_array import ShardedArray

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
# Functions that create plain arrays, which are then placed on the mesh; the last two belong to `fft`.
_CREATION = "arange asarray empty eye from_dlpack full linspace ones zeros fftfreq rfftfreq"


def placement(shape: tuple[int, ...], mesh: Mesh) -> NamedSharding:
    """Return the sharding of a new array: each axis of the mesh cuts the first dimension that it divides evenly."""
    entries: list[tuple[str, ...]] = [()] * len(shape)
    sizes = list(shape)
    for name, count in mesh.shape.items():
        place = next((d for d, size in enumerate(sizes) if size and size % count == 0), None)
        if place is not None:
            entries[place] += (name,)
            sizes[place] //= count
    return mesh.sharding(*entries)


def _creation(mesh: Mesh, function: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, device: Any = None, copy: bool | None = None, **kwargs: Any) -> Any:
        sharding = device if isinstance(device, (Sharding, NamedSharding)) else None
        if device not in (None, "cpu") and sharding is None:
            np.empty(0, device=device)  # raises NumPy's error
        if function in (np.asarray, np.from_dlpack) and isinstance(args[0], ShardedArray):
            x = args[0].astype(kwargs.get("dtype") or args[0].dtype, copy=bool(copy))
            return x if sharding is None else x.reshard(sharding)
        options = kwargs if copy is None else {**kwargs, "copy": copy}
        made = np.asarray(function(*args, **options))
        return shard(made, placement(made.shape, mesh) if sharding is None else sharding)

    return update_wrapper(create, function)


def _sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    found = np.sort(x, axis=axis, kind="stable" if stable else None)
    return np.flip(found, axis) if descending else found


def _argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Implement the standard's argsort; in descending order, equal elements keep their order."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable" if stable else None)
    order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[operator.index(axis)] - 1 - order


def _reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """Implement the standard's reshape: a sharded result is writable; the first write copies shared memory."""
    options = {} if copy is None else {"copy": copy}  # NumPy 2.0 does not have `copy`
    made: Any = np.reshape(x, shape, **options)  # type: ignore[call-overload]
    return as_writable(made) if isinstance(made, ShardedArray) else made


def _clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # the standard's parameter names
    return np.clip(x, min, max)


def _eigvals(x: Any, /) -> Any:
    found = np.linalg.eigvals(x)
    return found.astype(np.result_type(found.dtype, np.complex64), copy=False)


def _eig(x: Any, /) -> Any:
    found = np.linalg.eig(x)
    return type(found)(*(each.astype(np.result_type(each.dtype, np.complex64), copy=False) for each in found))


def _frequencies(function: Callable[..., Any]) -> Callable[..., Any]:
    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None) -> Any:
        made = function(n, d=d)
        return made if dtype is None else made.astype(dtype)

    return update_wrapper(frequencies, function)


# Functions of the standard that differ from NumPy's, by module; the `fft` functions are derived from NumPy's.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "numpy": {"sort": _sort, "argsort": _argsort, "clip": _clip, "reshape": _reshape},
    "numpy.linalg": {"eig": _eig, "eigvals": _eigvals},
}
_FREQUENCIES = ("fftfreq", "rfftfreq")


class Namespace:
    """NumPy's functions as in the array API standard; creation functions place arrays on a mesh."""

    __array_api_version__ = _VERSIONS[-1]

    def __init__(self, mesh: Mesh, module: Any = np) -> None:
        self.__name__ = f"ringlet.sharding.namespace({mesh!r})" + module.__name__.removeprefix("numpy")
        self.mesh, self._module = mesh, module
        self.__dict__.update(_OWN.get(module.__name__, {}))
        for name in _CREATION.split():
            if hasattr(module, name):
                function = getattr(module, name)
                setattr(self, name, _creation(mesh, _frequencies(function) if name in _FREQUENCIES else function))
        if module is np:
            self.linalg, self.fft = Namespace(mesh, np.linalg), Namespace(mesh, np.fft)

    def __getattr__(self, name: str) -> Any:
        # copy.copy looks names up before it has set `_module`.
        if name.startswith("_") and name != "__array_namespace_info__":
            raise AttributeError(name)
        return getattr(self._module, name)

    def __dir__(self) -> list[str]:
        return [*self._module.__all__, "__array_api_version__", "__array_namespace_info__"]

    def __repr__(self) -> str:
        return str(self.__name__)


_namespaces = lru_cache(maxsize=64)(Namespace)


def namespace(mesh: Mesh) -> Namespace:
    """Return the namespace of the array API standard, 2025.12, for arrays on a mesh.

    Its functions are NumPy's, except where the standard differs. Functions that create arrays, such as ``zeros`` and
    ``asarray``, place them on the mesh: each axis in turn cuts the first dimension that it divides
    evenly. ``device=`` may be ``"cpu"`` or a sharding. ``x.__array_namespace__()`` is this namespace for `x`'s mesh.

    Parameters
    ----------
    mesh : Mesh

    Returns
    -------
    Namespace

    References
    ----------
    data-apis/array-api, "Python array API standard" 2025.12, with the extensions ``linalg`` and ``fft``.

    Examples
    --------
    >>> xp = namespace(Mesh({"x": 2, "y": 2}))
    >>> x = xp.ones((6, 4))
    >>> x.shards[0].shape
    (3, 2)
    >>> x.__array_namespace__() is xp
    True
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"expected a mesh, such as ringlet.sharding.Mesh({{'x': 4}}), got {mesh!r}")
    return _namespaces(mesh)


def namespace_of(x: Any, api_version: Any) -> Namespace:
    """Return the namespace for an array's mesh; if the array has no mesh, for a mesh with one axis."""
    if api_version not in (None, *_VERSIONS):
        raise ValueError(f"version {api_version!r} of the array API is not supported: pass one of {_VERSIONS}")
    group = x._group
    if group.mesh is not None:
        return namespace(group.mesh)
    owner = None if group.member is None else group.owner
    axes = {"devices": group.num_devices}
    mesh = Mesh(axes, member=group.member, owner=owner, assignment=group.assignment, replica=group.replica)
    return namespace(mesh)
