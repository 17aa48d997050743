"""What a strategy does with variables: how it makes them, updates them and knows them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ringlet import context, nest
from ringlet.strategy.api.argument_checks import check_arguments
from ringlet.strategy.api.context_checks import require_cross_replica
from ringlet.strategy.api.extended_base import ExtendedBase
from ringlet.values import DistributedValues, Mirrored, check_components, regroup, select_replica

__all__ = ["Updating", "regroup_updates"]


class Updating(ExtendedBase):
    """Calls of an extended object that have to do with variables."""

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call a function for each component of a variable.

        Parameters
        ----------
        var : Variable
            One that was made in the scope of this strategy.
        fn : callable
            Takes one component and that component's part of the arguments. It runs in cross-replica context; what it
            writes to `var` goes to that component.
        args : list or tuple
        kwargs : mapping, optional
            Distributed values in them are replaced by the component's part.
        group : bool
            False gives a tuple with an answer for each component, instead of a distributed value.

        Returns
        -------
        nested structure
            Of :class:`~ringlet.values.Mirrored`, or of tuples if `group` is False; bare with one component.

        Raises
        ------
        ValueError, TypeError
            If `args` or `kwargs` are none or hold a value of another number of replicas, or `var` is no variable.
        RuntimeError
            Inside the scope of another strategy, or if another strategy made the variable.

        Notes
        -----
        Inside a replica this is a ``merge_call``, which all replicas make together.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> weights = ringlet.values.Mirrored([np.zeros(2), np.zeros(2)])
        >>> steps = ringlet.values.PerReplica([1.0, 2.0])
        >>> strategy.extended.update(weights, lambda w, step: w + step, args=(steps,), group=False)
        (array([1., 1.]), array([2., 2.]))
        """
        check_arguments(args, kwargs)
        if replica := self._current_replica():
            return replica.merge_call(
                lambda _, *merged, **named: self.update(var, fn, merged, named, group), args, kwargs
            )
        require_cross_replica(self._container_strategy())
        return self._update(var, fn, args, kwargs or {}, group)

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call a function once for each of the devices that :meth:`non_slot_devices` gave.

        Parameters
        ----------
        colocate_with : object
            What :meth:`non_slot_devices` gave.
        fn : callable
            Takes that device's part of the arguments. Where one variable stands for all devices it is called once, and
            distributed values stay whole, as in TensorFlow.
        args : list or tuple
        kwargs : mapping, optional
        group : bool

        Returns
        -------
        nested structure
            As :meth:`update` gives.

        Raises
        ------
        ValueError, TypeError
            If `args` or `kwargs` are none, or hold a value of another number of replicas.
        RuntimeError
            Inside the scope of another strategy.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> devices = strategy.extended.non_slot_devices([])
        >>> strategy.extended.update_non_slot(devices, lambda: 3)
        3
        """
        check_arguments(args, kwargs)
        if replica := self._current_replica():
            return replica.merge_call(
                lambda _, *merged, **named: self.update_non_slot(colocate_with, fn, merged, named, group), args, kwargs
            )
        require_cross_replica(self._container_strategy())
        return self._update_non_slot(colocate_with, fn, args, kwargs or {}, group)

    def non_slot_devices(self, var_list: Sequence[Any]) -> Any:
        """Give where optimizers keep what belongs to no single variable, such as step counts.

        Parameters
        ----------
        var_list : sequence of Variable
            The variables that are optimized.

        Returns
        -------
        tuple of str, or Variable
            The devices of the replicas; strategies without any give the variable with the least name.

        Examples
        --------
        >>> import ringlet
        >>> len(ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).extended.non_slot_devices([]))
        2
        """
        return min(var_list, key=lambda variable: str(variable.name))

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Give a context manager in which variables are made where another one is.

        Every device of this library is host memory, so nothing but the argument's origin is decided by it.

        Parameters
        ----------
        colocate_with_variable : Variable
            One that was made in the scope of this strategy.

        Raises
        ------
        ValueError
            If it was not.
        RuntimeError
            Outside of the scope of this strategy.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> with strategy.scope():
        ...     strategy.extended.colocate_vars_with(1.0)
        Traceback (most recent call last):
            ...
        ValueError: `colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy...
        """
        strategy = self._container_strategy()
        mode = context.current()
        if mode is None or mode.strategy is not strategy:
            require_cross_replica(strategy)
            raise RuntimeError(f'colocate_vars_with needs to be inside "with strategy.scope()" of {strategy!r}')
        if getattr(colocate_with_variable, "distribute_strategy", None) is not strategy:
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), "
                f"not: {colocate_with_variable!r}. Make that variable in `with strategy.scope()` of {strategy!r}"
            )
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Tell whether a variable was made in the scope of this strategy.

        Parameters
        ----------
        v : Variable

        Returns
        -------
        bool

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> strategy.extended.variable_created_in_scope(1.0)
        False
        """
        return getattr(v, "distribute_strategy", None) is self._container_strategy()

    def value_container(self, value: Any) -> Any:
        """Give the distributed variable that a component belongs to.

        Parameters
        ----------
        value : object

        Returns
        -------
        object
            The value itself if it is no component.

        Examples
        --------
        >>> import ringlet
        >>> ringlet.MirroredStrategy(["CPU:0"]).extended.value_container("no component")
        'no component'
        """
        container = getattr(value, "_container", None)
        if callable(container):  # a weak reference
            container = container()
        return value if container is None else container

    def read_var(self, v: Any) -> Any:
        """Read a variable in cross-replica context.

        Parameters
        ----------
        v : Variable

        Returns
        -------
        ndarray
            What is the same on all replicas, or the aggregate of a variable that is combined when it is read.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> class Constant:
        ...     def read_value(self): return 2.5
        >>> strategy.extended.read_var(Constant())
        2.5
        """
        return v.read_value()

    def _current_replica(self) -> Any:
        """The replica of any strategy that is current, for calls that replicas may make; None elsewhere."""
        mode = context.current()
        return None if mode is None or mode.is_cross_replica else mode

    # Hooks

    def _first_value(self, request: Any) -> Any:
        """Give the array that a new variable begins with."""
        return request.first_value()

    def _create_variable(self, request: Any) -> Any:
        """Make a variable in the scope of this strategy; a plain one unless this is overridden."""
        from ringlet.values.variables.variable_factory import create_plain  # loaded where variables are used

        return create_plain(self._container_strategy(), request)

    def _update(
        self, var: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        """What :meth:`update` gives in cross-replica context."""
        self._check_updated(var)
        components = getattr(var, "values", ()) if isinstance(var, DistributedValues) else (var,)
        check_components((args, kwargs), max(len(components), self._num_local_replicas), "update was given")
        updates = [self._update_component(i, fn, (part,), args, kwargs) for i, part in enumerate(components)]
        return regroup_updates(self, updates, group)

    def _check_updated(self, var: Any) -> None:
        """Refuse what :meth:`update` cannot change; variables of other strategies unless this is overridden."""
        maker, strategy = getattr(var, "distribute_strategy", None), self._container_strategy()
        if maker is not None and maker is not strategy:
            raise RuntimeError(
                f"Mixing different strategies: variable '{var.name}' was made by {maker!r} and not by {strategy!r}, "
                "whose update was called. Call update of the strategy that made it"
            )

    def _update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        """What :meth:`update_non_slot` gives in cross-replica context."""
        if not isinstance(colocate_with, (list, tuple)):  # one place for all replicas, which needs all components
            answer = context.call_in(context.UpdateMode(self._container_strategy(), 0), fn, *args, **kwargs)
            return regroup_updates(self, [answer], group)
        if len(colocate_with) > self._num_local_replicas:
            raise ValueError(
                f"update_non_slot was given {len(colocate_with)} devices, and {self._container_strategy()!r} has "
                f"{self._num_local_replicas}: give what its non_slot_devices gave"
            )
        check_components((args, kwargs), self._num_local_replicas, "update_non_slot was given")
        updates = [self._update_component(i, fn, (), args, kwargs) for i in range(len(colocate_with))]
        return regroup_updates(self, updates, group)

    def _update_component(
        self, number: int, fn: Callable[..., Any], first: tuple[Any, ...], args: Sequence[Any], kwargs: Any
    ) -> Any:
        row, named = select_replica(number, tuple(args)), select_replica(number, dict(kwargs))
        return context.call_in(context.UpdateMode(self._container_strategy(), number), fn, *first, *row, **named)


def regroup_updates(extended: ExtendedBase, updates: Sequence[Any], group: bool) -> Any:
    """Give what an update answers: the answers for the components as one.

    Parameters
    ----------
    extended : ExtendedBase
        Gives the components of values.
    updates : sequence
        One answer for each component.
    group : bool
        False gives tuples of answers, True distributed values.

    Returns
    -------
    nested structure

    Examples
    --------
    >>> import ringlet
    >>> extended = ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).extended
    >>> regroup_updates(extended, [{"x": 1.5}, {"x": 2.5}], False)
    {'x': (1.5, 2.5)}
    """
    regrouped = regroup(updates, Mirrored)
    return regrouped if group else nest.map_structure(extended._local_results, regrouped)
