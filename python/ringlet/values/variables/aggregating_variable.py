"""AggregatingVariable: a variable with one buffer that several replicas update together."""

from __future__ import annotations

from typing import Any

from ringlet import context
from ringlet.values.distributed_values import DistributedValues
from ringlet.values.indexed_slices import as_slices
from ringlet.values.per_replica import PerReplica
from ringlet.values.variables.distributed_variable import reduced, refuse_late, refuse_mixing
from ringlet.values.variables.scatter_nd import ALL_SCATTERS
from ringlet.values.variables.storage import Change
from ringlet.values.variables.synchronization import VariableAggregation
from ringlet.values.variables.update_opcodes import NAMES
from ringlet.values.variables.variable import Variable


class AggregatingVariable(Variable):
    """A variable of CentralStorageStrategy, with one buffer; assignments by replicas are aggregated."""

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        mode = context.current()
        if mode is not None:
            if mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
                refuse_mixing(self, mode)
            if mode.local_replica_id is not None:
                refuse_late(self, mode)
                return self._update_in_replica(mode, change, value, read_value)
        return self._write(change, value, read_value)

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        """Apply each replica's scatter separately, regardless of the aggregation, as in TensorFlow."""
        mode = context.current()
        if mode is None or mode.local_replica_id is None:
            return super()._scatter(name, sparse_delta)
        if mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
            refuse_mixing(self, mode)
        refuse_late(self, mode)
        return self._write(ALL_SCATTERS[name], as_slices(sparse_delta), True)

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                "You must specify an aggregation method to update a AggregatingVariable in Replica Context: all "
                f"replicas share '{self.name}'. Pass an explicit value for argument `aggregation`, e.g. "
                "`ringlet.Variable(..., aggregation=ringlet.VariableAggregation.SUM)` (`ringlet.VariableAggregation` "
                "lists the possible methods). Or update it in cross replica context: call "
                "`ringlet.get_replica_context().merge_call(merge_fn, ..)`, and call "
                "`ringlet.StrategyExtended.update()` inside `merge_fn`"
            )

        def merge_fn(strategy: Any, merged: Any) -> Any:
            refuse_late(self, mode)
            if self.aggregation is VariableAggregation.MEAN and isinstance(merged, PerReplica):
                self._refuse_mean()
            return self._write(change, reduced(self, strategy, merged), read_value)

        # Checked here, because merge_call would flatten lists.
        given = self._checked(value) if isinstance(value, (list, tuple)) else value
        return mode._merge_named(f"{NAMES[change]} of '{self.name}'", merge_fn, (given,), any_thread=True)

    def _refuse_mean(self) -> None:
        if self.dtype.kind in "biu":
            raise ValueError(
                f"variable '{self.name}' holds {self.dtype}, which cannot represent the MEAN of the replicas' values: "
                "create it with dtype='float64', or with another aggregation"
            )

    def _write(self, change: Change, value: Any, read_value: bool) -> Any:
        # The first component of a distributed value is used, as in TensorFlow.
        first = value.values[0] if isinstance(value, DistributedValues) else value
        written = self._write_one(0, change, self._checked(first))
        return self._as_read(written.view()) if read_value else None
