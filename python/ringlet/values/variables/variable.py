"""Variable: a mutable value."""

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
from ringlet.errors.exception_notes import without
from ringlet.values.indexed_slices import IndexedSlices, as_slices, dense_of
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.row_lookup import SparseReader
from ringlet.values.variables.scatter_nd import ALL_SCATTERS, ScatterNdUpdates
from ringlet.values.variables.storage import Change, Storage, replace
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.update_opcodes import assign_add, assign_sub
from ringlet.values.variables.variable_handle import VariableReference
from ringlet.values.variables.variable_spec import SpecProperties, VariableRequest, VariableSpec

Array = NDArray[Any]
V = TypeVar("V", bound="Variable")


class VariableType(type):
    """Metaclass of :class:`Variable`: calling the class creates a variable through the current strategy."""

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
        """Create a variable."""
        if cls is not Variable:
            raise TypeError(
                f"a {cls.__name__} cannot be created directly: call ringlet.Variable(...) inside `with "
                "strategy.scope()`"
            )
        if more:
            raise TypeError(
                "Variable takes only initial_value, trainable and validate_shape by position, but also got "
                f"{more}: use keywords for the other arguments, as in ringlet.Variable(value, name=...)"
            )
        request = VariableRequest(
            initial_value, trainable, validate_shape, name, dtype, constraint, synchronization, aggregation, shape
        )
        return create_variable(request)


def create_variable(request: VariableRequest) -> Any:
    """Create a variable through the current strategy."""
    mode = context.current()
    if mode is not None:
        return mode.strategy.extended._create_variable(request)
    from ringlet.values.variables.variable_factory import create_plain  # a cycle at module level

    return create_plain(None, request)


_OF_ARRAYS = ("T", "astype", "copy", "max", "mean", "min", "ravel", "reshape", "sum")


@without(**{name: f"variable.numpy().{name}" for name in _OF_ARRAYS})
class Variable(SparseReader, ScatterNdUpdates, SpecProperties, metaclass=VariableType):
    """A mutable value (``tf.Variable``); in expressions it behaves like its value, an array.

    In the scope of a strategy, the variable is of a subclass that the strategy chooses, for example with a component
    for each replica. Arrays read from a variable are read-only and never change: a later assignment uses other memory
    while such an array exists.

    Parameters
    ----------
    initial_value : array-like or callable
        Copied. A callable without arguments returns the value.
    trainable : bool, optional
        Whether optimizers should update the variable; by default True unless `synchronization` is ON_READ.
    validate_shape : bool
        Whether assigned values must have the shape of the initial value, or match `shape`.
    *more
        Not accepted: pass the other arguments by keyword.
    name : str, optional
        Name of the variable; need not be unique.
    dtype : dtype-like, optional
        Dtype of the variable: numbers, bool, or strings of a fixed length. By default the dtype of the initial value.
    constraint : callable, optional
        Function that optimizers apply after an update.
    synchronization : VariableSynchronization
        When the components are synchronized.
    aggregation : VariableAggregation, optional
        How the values that replicas write are aggregated.
    shape : sequence of int or None, or int, optional
        Shape of assigned values, by default that of the initial value; None stands for any size.

    Raises
    ------
    ValueError
        If there is no initial value, its shape does not match `shape`, or the strategy does not support the
        synchronization or the aggregation.
    TypeError
        If the initial value cannot be represented in the dtype, or consists of Python objects.

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

    _storage: Storage
    _component: int
    _device: str
    # None outside strategies. Weak, so that variables do not keep a strategy's threads alive.
    _strategy: weakref.ref[Any] | None
    # The distributed variable of a component; None for other variables.
    _container: weakref.ref[Any] | None

    if TYPE_CHECKING:  # the parameters of VariableType.__call__

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

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self._storage.shape(self._component)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the value."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the value."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the components are synchronized."""
        return self._spec.synchronization

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """Function that optimizers apply after an update, or None."""
        return self._spec.constraint

    @property
    def initializer(self) -> None:
        """Always None, as in TensorFlow's eager mode: variables are initialized on creation."""
        return None

    @property
    def device(self) -> str:
        """Full name of the device that holds the variable."""
        return self._device

    @property
    def distribute_strategy(self) -> Any:
        """The strategy that created the variable, or None; raises RuntimeError if it was deleted."""
        if self._strategy is None:
            return None
        strategy = self._strategy()
        if strategy is None:
            raise RuntimeError(
                f"the strategy that created variable '{self.name}' was deleted: keep a reference to the strategy while "
                "its variables are used"
            )
        return strategy

    def read_value(self) -> Any:
        """Return the value as a read-only array that never changes: a new view for every call, without a copy.

        The result is a sharded array if the initial value was one.
        """
        return self._as_operand()

    def value(self) -> Any:
        """Return the value; same as :meth:`read_value`."""
        return self._as_operand()

    def numpy(self) -> Any:
        """Return a writeable copy of the value; a NumPy scalar if it is 0-d."""
        array = as_ndarray(self.read_value())
        return array.copy() if array.ndim else array[()]

    def _as_operand(self) -> Any:
        return self._as_read(self._storage.read(self._component))

    def _as_read(self, array: Array) -> Any:
        reader = self._spec.reader
        return array if reader is None else reader(array)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assign a new value.

        Parameters
        ----------
        value : array-like
            Arrays must have the variable's dtype and shape; Python numbers are converted. An IndexedSlices is converted
            to the dense array.
        use_locking, name
            Ignored; for compatibility with TensorFlow.
        read_value : bool
            Whether to return a result.

        Returns
        -------
        Variable, ndarray, Mirrored or None
            A plain variable returns itself. A variable of several replicas returns its new value: in a replica the
            read-only array of that replica, outside replica context a Mirrored with the arrays of all replicas, or
            the aggregate of a variable that is aggregated on read.

        Raises
        ------
        ValueError
            If the value has a different dtype or shape, or the values of the replicas cannot be aggregated.
        TypeError
            If a Python number cannot be represented in the dtype.
        RuntimeError
            If the current strategy is not the variable's strategy.
        """
        return self._update(replace, dense_of(value, self.dtype), read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; parameters, results and errors as for :meth:`assign`."""
        return self._update(self._arithmetic(assign_add), dense_of(delta, self.dtype), read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; parameters, results and errors as for :meth:`assign`."""
        return self._update(self._arithmetic(assign_sub), dense_of(delta, self.dtype), read_value)

    def _arithmetic(self, change: Change) -> Change:
        """Return `change`, an arithmetic update, after checking that the variable holds numbers."""
        if self._spec.dtype.kind in "bSU":
            raise InvalidArgumentError(
                f"{change.__name__} requires numbers, but variable '{self.name}' holds {self.dtype}: compute the new "
                "value and assign it"
            )
        return change

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        return self._update(ALL_SCATTERS[name], as_slices(sparse_delta), True)

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        """Update the component that this object represents, without checking the current context."""
        written = self._write_one(self._component, change, self._checked(value))
        if not read_value:
            return None
        return self if self._container is None else self._as_read(written.view())

    def _checked(self, value: Any) -> Any:
        """Validate the operand of an update; an IndexedSlices is validated by the scatter."""
        spec, kind = self._spec, type(value)
        if kind is np.ndarray:
            if value.dtype is spec.dtype and value.shape == spec.shape:
                return value
        elif kind is IndexedSlices:
            return value
        return as_value(value, spec.dtype, spec.shape, spec.name)

    def _new_shape(self, change: Change, value: Any) -> tuple[int, ...] | None:
        """Return the shape of the new value; None if it cannot change."""
        return None if self._spec.is_static or change is not replace else np.shape(value)

    def _write_one(self, component: int, change: Change, value: Any) -> Array:
        return self._storage.write_one(component, change, value, self._new_shape(change, value))

    def ref(self) -> VariableReference:
        """Return a hashable reference to this variable, for dictionaries and sets."""
        return VariableReference(self)

    def __repr__(self) -> str:
        value = as_ndarray(self._as_operand())
        text = repr(value) if value.ndim else str(value)
        return f"<ringlet.Variable '{self.name}' shape={value.shape} dtype={self.dtype}, numpy={text}>"

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import values_table

        return values_table(f"Variable '{self.name}'", [self])

    def __copy__(self: V) -> V:
        return self  # as in TensorFlow, a shallow copy shares the value

    def __deepcopy__(self: V, memo: dict[int, Any]) -> V:
        twin = type(self)._of(self._spec, copy.deepcopy(self._storage, memo), self._component, self._device, None)
        twin._strategy = self._strategy
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle variable '{self.name}', because it would lose its strategy. Pickle variable.numpy(), and "
            "create a variable with that value after unpickling; functions of a ClusterCoordinator may use variables "
            "created in `with strategy.scope():`"
        )
