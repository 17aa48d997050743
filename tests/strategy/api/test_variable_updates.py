"""Calls of extended objects that concern variables, with stand-ins for variables."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet import context
from ringlet.values import Mirrored, PerReplica
from tests.strategy.replicas import mirrored, replica, replica_id

STRATEGIES = {n: mirrored(n) for n in (1, 2, 3, 8)}
TWO = STRATEGIES[2]


@dataclass
class Standing:
    """A stand-in for a variable."""

    name: str = "v:0"
    distribute_strategy: Any = None


def weights(num_replicas: int) -> Mirrored[Any]:
    return Mirrored([np.array([1.0, 2.0]) for _ in range(num_replicas)])


def steps(num_replicas: int) -> PerReplica[Any]:
    return PerReplica([np.array([10.0 * i, 1.0]) for i in range(num_replicas)])


# --- update ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_replicas", STRATEGIES)
def test_each_component_is_updated_with_its_part_of_the_arguments(num_replicas):
    def add(w: Any, step: Any, *, scale: float, offset: dict[str, Any]) -> Any:
        return w + step * scale + offset["o"]

    extended, value = STRATEGIES[num_replicas].extended, steps(num_replicas)
    result = extended.update(weights(num_replicas), add, (value,), {"scale": 2.0, "offset": {"o": value}}, group=False)
    assert [part.tolist() for part in result] == [[1 + 30.0 * i, 5] for i in range(num_replicas)]


@pytest.mark.parametrize("strategy", [TWO, mirrored(3), ringlet.OneDeviceStrategy("CPU:0")], ids=repr)
def test_a_variable_of_another_strategy_is_refused(strategy):
    with STRATEGIES[8].scope():
        v = ringlet.Variable(1.0, name="v")
    with pytest.raises(
        RuntimeError, match=r"Mixing different strategies: variable .v:0. was created by .*CPU:7.*update"
    ):
        strategy.extended.update(v, lambda w: w.assign(2.0))
    assert ringlet.get_strategy().extended.update(v, lambda w: w.assign(3.0), group=False) is not None


def test_only_variables_can_be_updated():
    central = ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    for plain in (5, np.ones(2), ringlet.Variable(1.0)):
        with pytest.raises(TypeError, match=r"updates variables that were created in its scope, got .* of type"):
            TWO.extended.update(plain, lambda w: w)
    with pytest.raises(ValueError, match=r"You can not update `var` 5. It must be a Variable"):
        central.extended.update(5, lambda w: w)
    with pytest.raises(ValueError, match="update was given a Mirrored with 3 components for 2 replicas"):
        TWO.extended.update(weights(3), lambda w: w)


def test_results_are_a_mirrored_value_or_a_tuple():
    def both(w: Any) -> Any:
        return {"w": w, "same": "text"}

    grouped = TWO.extended.update(weights(2), both)
    assert type(grouped["w"]) is Mirrored
    assert grouped["same"] == "text"
    apart = TWO.extended.update(weights(2), both, group=False)
    assert len(apart["w"]) == 2
    assert apart["same"] == ("text",)
    assert TWO.extended.update(weights(2), lambda _: None) is None


def test_an_update_is_in_cross_replica_context_and_has_its_component():
    def state(_: Any) -> Any:
        mode = context.current()
        assert mode is not None
        return (ringlet.get_strategy() is TWO, ringlet.in_cross_replica_context(), mode.update_replica_id)

    assert TWO.extended.update(weights(2), state, group=False)[2] == (0, 1)
    with TWO.scope():
        assert context.current().update_replica_id is None
        assert TWO.extended.update(weights(2), state, group=False)[:2] == ((True,), (True,))
    assert context.current() is None


def test_an_exception_of_an_update_leaves_no_mode_behind():
    with pytest.raises(ZeroDivisionError):
        TWO.extended.update(weights(2), lambda _: 1 // 0)
    assert not ringlet.has_strategy()


@pytest.mark.parametrize("num_replicas", STRATEGIES)
def test_replicas_update_together(num_replicas):
    calls: list[Any] = []
    variable = weights(num_replicas)

    def step() -> Any:
        strategy = replica().strategy
        return strategy.extended.update(
            variable, lambda w, x: calls.append(float(x)) or w + x, args=(replica_id() + 0.5,)
        )

    strategy = STRATEGIES[num_replicas]
    for i, part in enumerate(strategy.experimental_local_results(strategy.run(step))):
        assert part.tolist() == [1 + i + 0.5, 2 + i + 0.5]
    assert calls == [i + 0.5 for i in range(num_replicas)]


def test_an_update_by_another_strategy_is_refused():
    with STRATEGIES[3].scope(), pytest.raises(RuntimeError, match="Mixing different strategies"):
        TWO.extended.update(weights(2), lambda w: w)
    with pytest.raises(RuntimeError, match="Mixing different strategies"):
        STRATEGIES[3].run(lambda: TWO.extended.update(weights(2), lambda w: w))


def test_arguments_of_updates_are_checked():
    for call in (TWO.extended.update, TWO.extended.update_non_slot):
        with pytest.raises(ValueError, match="positional args must be a list or tuple"):
            call(weights(2), lambda w: w, args=3)
        with pytest.raises(TypeError, match="kwargs must be a mapping"):
            call(weights(2), lambda w: w, kwargs=3)


@pytest.mark.parametrize("count", [1, 3])
def test_arguments_of_another_number_of_replicas_are_refused(count):
    value, devices = PerReplica([1.0] * count), TWO.extended.non_slot_devices([])
    with pytest.raises(ValueError, match=f"update was given a PerReplica with {count} components for 2 replicas"):
        TWO.extended.update(weights(2), lambda w, x: w, args=(value,))
    with pytest.raises(ValueError, match=f"update_non_slot was given a PerReplica with {count} components for 2 rep"):
        TWO.extended.update_non_slot(devices, lambda x: x, kwargs={"x": [value]})
    with pytest.raises(ValueError, match=r"was given 3 devices, but .* has 2"):
        TWO.extended.update_non_slot([*devices, "CPU:7"], lambda: None)


# --- what belongs to no variable ------------------------------------------------------------------------------------


def test_state_of_no_particular_variable_is_updated_once_for_each_device():
    devices = TWO.extended.non_slot_devices([])
    assert devices == TWO.extended.worker_devices
    assert TWO.extended.update_non_slot(devices, lambda x: x * 2, args=(PerReplica([1.5, 2.5]),), group=False) == (3, 5)
    assert TWO.extended.update_non_slot(devices, lambda x: x * 2, args=(PerReplica([1.5, 2.5]),)).values == (3, 5)
    inside = TWO.run(lambda: TWO.extended.update_non_slot(devices, lambda x: x + 1, args=(replica_id() + 0.5,)))
    assert inside.values == (1.5, 2.5)


@pytest.mark.parametrize(
    "strategy",
    [ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]), TWO, ringlet.get_strategy()],
    ids=repr,
)
def test_where_one_variable_stands_for_all_devices_distributed_values_stay_whole(strategy):
    with strategy.scope():
        v = ringlet.Variable(1.0)
    value = PerReplica([1.0, 2.0])
    assert strategy.extended.update_non_slot(v, lambda x, y: (x, y), args=(value,), kwargs={"y": 3}) == (value, 3)


def test_without_devices_of_its_own_it_is_with_the_least_name():
    extended = ringlet.get_strategy().extended
    a, b = Standing("a:0"), Standing("b:0")
    assert extended.non_slot_devices([b, a]) is a
    assert extended.update_non_slot(a, lambda x: x, args=(3,)) == 3


# --- where variables come from --------------------------------------------------------------------------------------


def test_variables_belong_to_the_strategy_of_their_scope():
    mine, others = Standing(distribute_strategy=TWO), Standing(distribute_strategy=STRATEGIES[3])
    known = TWO.extended.variable_created_in_scope
    assert [known(mine), known(others), known(Standing()), known(1.5)] == [True, False, False, False]
    assert ringlet.get_strategy().extended.variable_created_in_scope(Standing())
    assert not ringlet.get_strategy().extended.variable_created_in_scope(mine)


def test_variables_are_colocated_with_those_of_the_strategy_inside_of_its_scope():
    mine = Standing(distribute_strategy=TWO)
    with TWO.scope(), TWO.extended.colocate_vars_with(mine):
        assert ringlet.get_strategy() is TWO
    with TWO.scope():
        for other in (1.5, Standing(), Standing(distribute_strategy=STRATEGIES[3])):
            with pytest.raises(ValueError, match="`colocate_vars_with` must only be passed a variable created in this"):
                TWO.extended.colocate_vars_with(other)
    with pytest.raises(RuntimeError, match=r'inside "with strategy.scope\(\)"'):
        TWO.extended.colocate_vars_with(mine)
    with STRATEGIES[3].scope(), pytest.raises(RuntimeError, match="Mixing"):
        TWO.extended.colocate_vars_with(mine)


@pytest.mark.parametrize("hold", [lambda x: x, weakref.ref], ids=["strong", "weak"])
def test_the_container_of_a_component_is_found(hold):
    variable, component = Standing("whole"), Standing("part")
    component._container = hold(variable)
    assert TWO.extended.value_container(component) is variable
    assert TWO.extended.value_container(variable) is variable
    assert TWO.extended.value_container(1.5) == 1.5


def test_a_collected_container_leaves_the_value():
    component = Standing("part")
    component._container = weakref.ref(Standing("whole"))
    assert TWO.extended.value_container(component) is component
