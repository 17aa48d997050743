"""What replicas and processes bring is exchanged once for all of them, wherever they call."""

from __future__ import annotations

import ringlet
from ringlet.rank_zero import process_exchange
from ringlet.rank_zero.process_exchange import everybody


def test_rows_of_any_length_are_put_together_and_taken_apart():
    rows = [b"", b"a", b"bcd" * 1000]
    packed = process_exchange._packed(rows)
    assert process_exchange._unpacked([packed, process_exchange._packed([]), packed]) == rows * 2


def test_replicas_of_a_process_call_it_once_with_what_all_of_them_bring():
    calls = []

    def talk(exchange, items):
        calls.append(items)
        return exchange([bytes([item]) for item in items])

    def step():
        return everybody("a question", [int(ringlet.get_replica_context().replica_id_in_sync_group)], talk)

    assert ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]).run(step) == [b"\0", b"\1", b"\2"]
    assert calls == [[0, 1, 2]]


def test_over_workers_rows_come_in_the_order_of_replicas(workers):
    program = """
    from ringlet.rank_zero.process_exchange import everybody
    def ask(number):
        return everybody("a question", [number], lambda exchange, items: exchange([bytes([i]) for i in items]))
    inside = strategy.run(lambda: ask(rank()))
    answer = [[list(row) for row in inside], [list(row) for row in ask(me)]]
    """
    count = 2 * workers.num_local
    assert workers.run(program) == [[[[i] for i in range(count)], [[0], [1]]]] * 2
