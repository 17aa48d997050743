"""One iteration, as the nodes of a graph see it."""

from __future__ import annotations

import gc

from ringlet.data import Dataset
from ringlet.data.graph.iteration_context import Run, graph_nodes


def test_every_node_comes_once_and_behind_its_inputs():
    node = Dataset.range(4).shuffle(2).repeat(2).batch(2).node
    assert [type(n).__name__ for n in graph_nodes(node)] == ["TableSource", "Shuffle", "Repeat", "Batch"]

    class Twice:
        inputs = (node, node)

    assert len(list(graph_nodes(Twice()))) == 5


def test_a_choice_is_made_once_for_all_rounds_of_an_iteration():
    node, numbers = Dataset.range(3).node, iter(range(10))
    run = Run()
    choices = [r.choice(node, lambda: next(numbers)) for r in (run, run.in_round(0), run.in_round(1).in_round(2))]
    assert choices == [0, 0, 0]
    assert Run().choice(node, lambda: next(numbers)) == 1


def test_choices_are_taken_over_by_the_nodes_of_an_equal_graph():
    def graph():
        return Dataset.range(9).shuffle(9).shuffle(3).node

    first, second = graph(), graph()
    run, other = Run(), Run()
    run.begin(first)
    other.set_state(second, run.get_state(first))
    assert other.get_state(second) == run.get_state(first)
    assert run.get_state(first)[0] is None


def test_an_iteration_keeps_no_dataset_alive_that_a_function_made():
    run = Run()
    run.begin(Dataset.range(3).shuffle(3).node)
    gc.collect()
    assert len(run._choices) == 0


def test_iterations_of_a_shuffle_are_numbered_where_they_begin():
    dataset = Dataset.range(20).shuffle(20, seed=0)
    first, second = iter(dataset), iter(dataset)
    again = Dataset.range(20).shuffle(20, seed=0)
    in_turn = [list(again), list(again)]
    assert [list(second), list(first)] == in_turn[::-1]
