"""How a dataset is made and distributed, in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.data import AutoShardPolicy, Dataset, DistributedDataset, Options, TextLineDataset, explain
from ringlet.data.explain_dataset import explanation


def with_policy(dataset, policy):
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def test_a_graph_is_printed_with_its_last_operation_first(capsys):
    explain(Dataset.range(10).shuffle(4, seed=1).batch(3))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "Batch(batch_size=3, drop_remainder=False)  4 elements  TensorSpec(shape=(None,), dtype=int64)"
    assert second.startswith("  Shuffle(buffer_size=4")
    assert third.startswith("    TableSource")


@pytest.mark.parametrize(
    ("dataset", "count"),
    [
        (Dataset.range(3).repeat(), "no end"),
        (Dataset.from_generator(lambda: iter([1]), np.int64), "elements unknown"),
        (Dataset.range(3), "3 elements"),
    ],
)
def test_the_number_of_elements_is_told(dataset, count):
    assert count in explanation(dataset).splitlines()[0]


def test_functions_are_not_called():
    explanation(Dataset.range(3).map(lambda x: pytest.fail("called")))
    explanation(DistributedDataset(Dataset.range(3).batch(2).map(lambda x: pytest.fail("called")), 2))


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (AutoShardPolicy.AUTO, "policy: DATA (AUTO: TableSource does not read files)"),
        (AutoShardPolicy.DATA, "policy: DATA (set in the options)"),
        (AutoShardPolicy.OFF, "cut:    rows are rebatched to the sizes 2, 2, 1 in turn"),
        (AutoShardPolicy.HINT, "policy: HINT (set in the options)"),
        (AutoShardPolicy.FILE, "the only worker reads everything"),
    ],
)
def test_the_policy_and_its_reason_are_told(policy, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explanation(DistributedDataset(with_policy(Dataset.range(10).batch(5), policy), 3))
    assert text in found


def test_the_place_and_the_chunks_of_a_worker_are_told():
    found = explanation(DistributedDataset(Dataset.range(10).batch(5), 2, num_workers=2, worker_index=1))
    assert found.startswith("worker 1 of 2, 2 of 4 replicas\n")
    assert "this worker keeps the chunks 1, 3" in found


def test_the_files_of_a_worker_are_named(tmp_path):
    names = []
    for number in range(20):
        path = tmp_path / f"part-{number:02d}"
        path.write_text("line\n")
        names.append(str(path))
    found = explanation(DistributedDataset(TextLineDataset(names).batch(2), 1, num_workers=2, worker_index=1))
    assert "files of this worker: 10" in found
    assert f"  {names[1]}\n  {names[3]}\n" in found
    assert found.endswith("  and 2 more")


def test_steps_are_shown_with_the_rows_of_each_replica():
    found = explanation(DistributedDataset(Dataset.range(20).batch(9), 2, num_workers=2, worker_index=1), steps=2)
    *_, first, second = found.splitlines()
    assert first == "step 0: replica 2 gets 3 rows [3 4 5], replica 3 gets 0 rows"
    assert second.startswith("step 1: replica 2 gets 3 rows [12 13 14]")
    (last,) = explanation(DistributedDataset(Dataset.range(20).batch(10), 2), steps=1).splitlines()[-1:]
    assert last == "step 0: replica 0 gets 5 rows [0 1 2 3] ..., replica 1 gets 5 rows [5 6 7 8] ..."


def test_steps_of_tables_and_of_scalars_are_shown():
    assert "replica 0 gets 2 rows" in explanation(DistributedDataset([np.zeros((4, 2))], 2), steps=1)
    assert explanation(DistributedDataset(Dataset.range(1), 1), steps=3).endswith("step 0: replica 0 gets np.int64(0)")


def test_a_notebook_shows_how_a_dataset_is_distributed():
    shown = DistributedDataset(Dataset.range(10).batch(4), 2)._repr_html_()
    for text in ("DistributedDataset", "replicas", ">2<", "DATA (AUTO", "each global batch is cut into 2", ">3<"):
        assert text in shown
    assert "none (a function created the datasets)" in DistributedDataset.of_replicas([Dataset.range(2)])._repr_html_()


def test_datasets_of_a_function_are_told_apart():
    found = explanation(DistributedDataset.of_replicas([Dataset.range(2).batch(1), Dataset.range(3).batch(1)]))
    assert "policy: none (a function created the datasets)" in found
    assert found.count("TableSource") == 2


def test_what_is_no_dataset_is_refused():
    with pytest.raises(TypeError, match="explain takes a Dataset"):
        explain([1, 2])
