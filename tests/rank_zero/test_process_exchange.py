"""The exchange of data between all replicas or processes, inside and outside of replicas."""

from __future__ import annotations

import ringlet
from ringlet.rank_zero.process_exchange import call_with_exchange


def test_replicas_of_a_process_call_it_once_with_all_their_items():
    calls = []

    def function(exchange, items):
        calls.append(items)
        return exchange([bytes([item]) for item in items])

    def step():
        return call_with_exchange("a question", [int(ringlet.get_replica_context().replica_id_in_sync_group)], function)

    assert ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]).run(step) == [b"\0", b"\1", b"\2"]
    assert calls == [[0, 1, 2]]


def test_over_workers_rows_come_in_the_order_of_replicas(workers):
    program = """
    from ringlet.rank_zero.process_exchange import call_with_exchange
    def ask(number):
        return call_with_exchange("a question", [number], lambda exchange, items: exchange([bytes([i]) for i in items]))
    inside = strategy.run(lambda: ask(rank()))
    answer = [[list(row) for row in inside], [list(row) for row in ask(me)]]
    """
    count = 2 * workers.num_local
    assert workers.run(program) == [[[[i] for i in range(count)], [[0], [1]]]] * 2
