"""Creation and updates of a strategy's variables: methods of ``strategy.extended``, and their hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ringlet import context, nest
from ringlet.collectives.argument_parsing import shortened
from ringlet.strategy.api.extended_base import ExtendedBase
from ringlet.strategy.calls.argument_checks import check_arguments
from ringlet.strategy.calls.context_checks import require_cross_replica
from ringlet.values import DistributedValues, Mirrored, check_components, regroup, select_replica


class VariableUpdates(ExtendedBase):
    """Methods of ``strategy.extended`` for variables."""

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
            A variable created in the scope of this strategy.
        fn : callable
            Called in cross-replica context, with a component of `var` and the same replica's arguments; assignments
            to `var` change that component.
        args : list or tuple
        kwargs : mapping, optional
            Each call receives one component of the distributed values in `args` and `kwargs`.
        group : bool
            False returns a tuple with the result for each component, instead of a distributed value.

        Returns
        -------
        nested structure
            With :class:`~ringlet.values.Mirrored` leaves, bare with one component; with tuples if `group` is False.

        Raises
        ------
        ValueError, TypeError
            If `args` or `kwargs` have the wrong type or contain a value with a different number of replicas, or `var`
            is not a variable.
        RuntimeError
            If called inside the scope of another strategy, or if another strategy created the variable.

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
        """Call a function once for each of the devices from :meth:`non_slot_devices`.

        Parameters
        ----------
        colocate_with : object
            The result of :meth:`non_slot_devices`.
        fn : callable
            Called with one component of each distributed value in the arguments. If `colocate_with` is not a tuple,
            `fn` is called once, with whole distributed values, as in TensorFlow.
        args : list or tuple
        kwargs : mapping, optional
        group : bool

        Returns
        -------
        nested structure
            As for :meth:`update`.

        Raises
        ------
        ValueError, TypeError
            If `args` or `kwargs` have the wrong type, or contain a value with a different number of replicas.
        RuntimeError
            If called inside the scope of another strategy.

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
        """Return the location for optimizer state that belongs to no particular variable, such as step counts.

        Parameters
        ----------
        var_list : sequence of Variable
            The variables that are optimized.

        Returns
        -------
        tuple of str, str, or Variable
            The devices of the replicas; in a TPUStrategy, the CPU of the first one's host; in the default strategy, a
            CentralStorageStrategy and a ParameterServerStrategy, the variable whose name sorts first.

        Examples
        --------
        >>> import ringlet
        >>> len(ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).extended.non_slot_devices([]))
        2
        """
        return min(var_list, key=lambda variable: str(variable.name))

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Return a context manager in which variables are created on the device of another variable.

        Every device of this library is host memory, so this method only checks its argument.

        Parameters
        ----------
        colocate_with_variable : Variable
            A variable created in the scope of this strategy.

        Raises
        ------
        ValueError
            If another strategy created the variable.
        RuntimeError
            If called outside of the scope of this strategy.

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
                f"not: {shortened(colocate_with_variable)}. Create that variable in `with strategy.scope()` of "
                f"{strategy!r}"
            )
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Return whether a variable was created in the scope of this strategy.

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
        """Return the distributed variable that a component belongs to.

        Parameters
        ----------
        value : object

        Returns
        -------
        object
            The value itself if it is not a component.

        Examples
        --------
        >>> import ringlet
        >>> ringlet.MirroredStrategy(["CPU:0"]).extended.value_container("no component")
        'no component'
        """
        container = getattr(value, "_container", None)
        if callable(container):  # the container is stored as a weak reference
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
            The value common to all replicas, or the aggregate of a variable that is combined on read.

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
        """Return the context of the current replica, of any strategy; None outside of replicas."""
        mode = context.current()
        return None if mode is None or mode.is_cross_replica else mode

    # --- hooks --------------------------------------------------------------------------------------------------------

    def _first_value(self, request: Any) -> Any:
        return request.first_value()

    def _create_variable(self, request: Any) -> Any:
        """Create a variable in the scope of this strategy; a plain variable unless overridden."""
        from ringlet.values.variables.variable_factory import create_plain

        return create_plain(self._container_strategy(), request)

    def _update(
        self, var: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        """Implement :meth:`update` in cross-replica context."""
        self._check_updated(var)
        components = getattr(var, "values", ()) if isinstance(var, DistributedValues) else (var,)
        check_components((args, kwargs), max(len(components), self._num_local_replicas), "update was given")
        updates = [self._update_component(i, fn, (part,), args, kwargs) for i, part in enumerate(components)]
        return regroup_updates(self, updates, group)

    def _check_updated(self, var: Any) -> None:
        """Raise an error for variables that :meth:`update` cannot change; by default, variables of other strategies."""
        maker, strategy = getattr(var, "distribute_strategy", None), self._container_strategy()
        if maker is not None and maker is not strategy:
            raise RuntimeError(
                f"Mixing different strategies: variable '{var.name}' was created by {maker!r}, but update of "
                f"{strategy!r} was called. Call update of the strategy that created it"
            )

    def _update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        """Implement :meth:`update_non_slot` in cross-replica context."""
        if not isinstance(colocate_with, (list, tuple)):  # a single variable: per-replica values are not split
            result = context.call_in(context.UpdateMode(self._container_strategy(), 0), fn, *args, **kwargs)
            return regroup_updates(self, [result], group)
        if len(colocate_with) > self._num_local_replicas:
            raise ValueError(
                f"update_non_slot was given {len(colocate_with)} devices, but {self._container_strategy()!r} has "
                f"{self._num_local_replicas}: pass the result of its non_slot_devices"
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
    """Regroup the results of all components into distributed values, or into tuples if not `group`."""
    regrouped = regroup(updates, Mirrored)
    return regrouped if group else nest.map_structure(extended._local_results, regrouped)
