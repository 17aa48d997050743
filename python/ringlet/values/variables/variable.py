"""Variable: a value that programs change."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringlet import context
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices, as_slices
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.row_lookup import SparseReader
from ringlet.values.variables.scatter_updates import Scatters
from ringlet.values.variables.storage import Change, Storage, replace
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.update_opcodes import assign_add, assign_sub
from ringlet.values.variables.variable_handle import VariableReference
from ringlet.values.variables.variable_spec import VariableRequest, VariableSpec

__all__ = ["Variable", "VariableType", "create_variable"]

Array = NDArray[Any]
V = TypeVar("V", bound="Variable")


class VariableType(type):
    """The type of :class:`Variable`: a call of that class asks the current strategy for a variable.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     type(ringlet.Variable(1.5)).__name__
    'MirroredVariable'
    """

    def __call__(
        cls,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        *more: Any,
        name: str | None = None,
        dtype: Any = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
        shape: Any = None,
    ) -> Any:
        """Make a variable."""
        if cls is not Variable:
            raise TypeError(
                f"a {cls.__name__} is made by its strategy: call ringlet.Variable(...) inside `with strategy.scope()`"
            )
        if more:
            raise TypeError(
                "Variable takes initial_value, trainable and validate_shape by position, and everything else by its "
                f"name, got {more} besides: write ringlet.Variable(value, name=...)"
            )
        request = VariableRequest(
            initial_value, trainable, validate_shape, name, dtype, constraint, synchronization, aggregation, shape
        )
        return create_variable(request)


def create_variable(request: VariableRequest) -> Any:
    """Ask the current strategy for a variable.

    Parameters
    ----------
    request : VariableRequest

    Returns
    -------
    Variable

    Examples
    --------
    >>> create_variable(VariableRequest(1.5, name="v"))
    <ringlet.Variable 'v:0' shape=() dtype=float64, numpy=1.5>
    """
    mode = context.current()
    if mode is not None:
        return mode.strategy.extended._create_variable(request)
    from ringlet.values.variables.variable_factory import create_plain  # which knows this class

    return create_plain(None, request)


class Variable(SparseReader, Scatters, metaclass=VariableType):
    """A value that programs change (``tf.Variable``); in expressions it behaves as its value, an array.

    Made in the scope of a strategy, it is what that strategy makes: a variable with a component for each replica, for
    example, which is a subclass of this. An array that was read from a variable never changes: it is read-only, and
    a later assignment goes to other memory while anybody holds it.

    Parameters
    ----------
    initial_value : array-like or callable
        Copied. A callable without arguments gives it.
    trainable : bool, optional
        Whether optimizers should change it; yes, unless `synchronization` is ON_READ.
    validate_shape : bool
        Whether assigned values must have the shape of the first one.
    *more
        Refused: everything else goes by its name.
    name : str, optional
        Need not be unique.
    dtype : dtype-like, optional
        What the initial value is converted to; what NumPy makes of it, unless given. Numbers, bools, strings of a fixed
        length.
    constraint : callable, optional
        Kept for optimizers.
    synchronization : VariableSynchronization
        When the components are brought together.
    aggregation : VariableAggregation, optional
        How what replicas write becomes one value.
    shape : sequence of int or None, or int, optional
        What values must have, if other than the shape of the first one; None stands for any size.

    Raises
    ------
    ValueError
        If there is no initial value, its shape is another one than `shape`, or the strategy does not support the
        synchronization or the aggregation.
    TypeError
        If the initial value does not fit the dtype, or consists of Python objects.

    Examples
    --------
    >>> import ringlet
    >>> v = Variable([1.0, 2.0], name="v")
    >>> before = v.read_value()
    >>> v.assign_add([10.0, 10.0])
    <ringlet.Variable 'v:0' shape=(2,) dtype=float64, numpy=array([11., 12.])>
    >>> before, v * 2
    (array([1., 2.]), array([22., 24.]))
    """

    _spec: VariableSpec
    _storage: Storage
    _component: int
    _device: str
    # None outside of strategies. Weak: variables that live on do not keep a strategy's threads.
    _strategy: weakref.ref[Any] | None
    # Leads from a component to its variable; None for a variable that is none.
    _container: weakref.ref[Any] | None

    if TYPE_CHECKING:  # what VariableType.__call__ takes

        def __init__(
            self,
            initial_value: Any = None,
            trainable: bool | None = None,
            validate_shape: bool = True,
            *,
            name: str | None = None,
            dtype: Any = None,
            constraint: Callable[..., Any] | None = None,
            synchronization: VariableSynchronization = VariableSynchronization.AUTO,
            aggregation: VariableAggregation | None = VariableAggregation.NONE,
            shape: Any = None,
        ) -> None: ...

    @classmethod
    def _of(cls: type[V], spec: VariableSpec, storage: Storage, component: int, device: str, strategy: Any) -> V:
        variable = cls.__new__(cls)
        variable._spec, variable._storage, variable._component = spec, storage, component
        variable._device = device
        variable._strategy = None if strategy is None else weakref.ref(strategy)
        variable._container = None
        return variable

    # What it is

    @property
    def name(self) -> str:
        """The name, which ends in ``:0``."""
        return self._spec.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self._spec.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self._storage.shape(self._component)

    @property
    def ndim(self) -> int:
        """How many dimensions the value has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the value has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def trainable(self) -> bool:
        """Whether optimizers should change it."""
        return self._spec.trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the components are brought together."""
        return self._spec.synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How what replicas write becomes one value."""
        return self._spec.aggregation

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """What optimizers apply to the value after they have changed it."""
        return self._spec.constraint

    @property
    def device(self) -> str:
        """The full name of the device that holds it."""
        return self._device

    @property
    def distribute_strategy(self) -> Any:
        """The strategy that made it; None for a variable made outside of strategies."""
        if self._strategy is None:
            return None
        strategy = self._strategy()
        if strategy is None:
            raise RuntimeError(f"the strategy that made variable '{self.name}' is gone: keep the strategy")
        return strategy

    # Reading

    def read_value(self) -> Any:
        """Give the value as an array that never changes: read-only, without a copy; a new object for every call.

        It is a sharded array if the variable began with one.
        """
        return self._as_operand()

    def value(self) -> Any:
        """Give the value, as :meth:`read_value` does."""
        return self._as_operand()

    def numpy(self) -> Any:
        """Give a copy of the value that may be written to; a NumPy scalar if it has no dimension."""
        array = as_ndarray(self.read_value())
        return array.copy() if array.ndim else array[()]

    def _as_operand(self) -> Any:
        return self._seen(self._storage.read(self._component))

    def _seen(self, array: Array) -> Any:
        """What readers get of a value."""
        reader = self._spec.reader
        return array if reader is None else reader(array)

    # Writing

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Put another value in the place of the present one.

        Parameters
        ----------
        value : array-like
            Arrays must have the variable's dtype and shape; Python numbers are converted.
        use_locking, name
            Accepted as TensorFlow accepts them; nothing depends on them.
        read_value : bool
            Whether anything is returned.

        Returns
        -------
        Variable, ndarray, Mirrored or None
            A variable with one component gives itself. Otherwise what was written: inside a replica the read-only
            array of this replica, outside of replicas all of them.

        Raises
        ------
        ValueError
            If the value has another dtype or shape, or the aggregation cannot combine what the replicas gave.
        TypeError
            If a Python number does not fit the dtype.
        RuntimeError
            If another strategy is current than the variable's.
        """
        return self._update(replace, value, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; parameters, results and errors are those of :meth:`assign`."""
        return self._update(self._arithmetic(assign_add), delta, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; parameters, results and errors are those of :meth:`assign`."""
        return self._update(self._arithmetic(assign_sub), delta, read_value)

    def _arithmetic(self, change: Change) -> Change:
        """A change that variables of numbers can make: bools are none, and text would be cut off."""
        if self._spec.dtype.kind in "bSU":
            raise InvalidArgumentError(
                f"{change.__name__} takes numbers, and variable '{self.name}' holds {self.dtype}: compute the new "
                "value yourself, and assign it"
            )
        return change

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        return self._update(SCATTERS[name], as_slices(sparse_delta), True)

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        """Change the component that this is, wherever it is called."""
        written = self._write_one(self._component, change, self._checked(value))
        if not read_value:
            return None
        return self if self._container is None else self._seen(written.view())

    def _checked(self, value: Any) -> Any:
        """What a change of the storage takes: rows are checked when they are scattered."""
        spec, kind = self._spec, type(value)
        if kind is np.ndarray:
            if value.dtype is spec.dtype and value.shape == spec.shape:
                return value
        elif kind is IndexedSlices:
            return value
        return as_value(value, spec.dtype, spec.shape, spec.name)

    def _new_shape(self, change: Change, value: Any) -> tuple[int, ...] | None:
        """What the new value has; None if it cannot be another one."""
        return None if self._spec.is_static or change is not replace else np.shape(value)

    def _write_one(self, component: int, change: Change, value: Any) -> Array:
        return self._storage.write_one(component, change, value, self._new_shape(change, value))

    # As an object

    def ref(self) -> VariableReference:
        """Give an object that stands for this variable as a key of dictionaries and sets."""
        return VariableReference(self)

    def __repr__(self) -> str:
        value = as_ndarray(self._as_operand())
        text = repr(value) if value.ndim else str(value)
        return f"<ringlet.Variable '{self.name}' shape={value.shape} dtype={self.dtype}, numpy={text}>"

    def __copy__(self: V) -> V:
        return self  # as in TensorFlow, a shallow copy shares the value

    def __deepcopy__(self: V, memo: dict[int, Any]) -> V:
        twin = type(self)._of(self._spec, copy.deepcopy(self._storage, memo), self._component, self._device, None)
        twin._strategy = self._strategy
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle variable '{self.name}': where it is unpickled no strategy would know of it. Pickle "
            "variable.numpy(), and make a variable of it there"
        )
