"""ClusterSpec: which tasks a cluster has, dense and sparse."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace as Record

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.cluster import ClusterDef, ClusterSpec
from ringlet.errors import ClusterConfigError

addresses = st.text(st.characters(codec="utf-8"), max_size=12)
indices = st.integers(0, 2**31 - 1)
clusters = st.dictionaries(
    addresses, st.one_of(st.lists(addresses, max_size=5), st.dictionaries(indices, addresses, max_size=5)), max_size=4
)


@given(clusters)
def test_every_task_is_found_again_under_its_index(cluster):
    spec = ClusterSpec(cluster)
    for job, tasks in cluster.items():
        numbered = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
        assert spec.num_tasks(job) == len(numbered)
        assert spec.task_indices(job) == sorted(numbered)
        assert [spec.task_address(job, index) for index in numbered] == list(numbered.values())
    assert spec.jobs == list(cluster)
    assert bool(spec) == bool(cluster)


@given(clusters)
def test_a_copy_by_any_way_is_equal(cluster):
    spec = ClusterSpec(cluster)
    message = spec.as_cluster_def()
    ways = [spec, spec.as_dict(), message, ClusterDef.FromString(message.SerializeToString())]
    assert all(ClusterSpec(way) == spec for way in ways)
    assert copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec
    assert spec != ClusterSpec({**cluster, "another job": []})


def test_a_message_of_tensorflow_is_read_by_its_fields():
    jobs = [Record(name="ps", tasks={0: "p:1"}), Record(name="worker", tasks={1: "b:1"})]
    spec = ClusterSpec(Record(job=jobs, SerializeToString=bytes))
    assert spec.as_dict() == {"ps": ["p:1"], "worker": {1: "b:1"}}


def test_a_job_is_a_list_where_no_index_is_missing():
    spec = ClusterSpec({"a": {1: "y", 0: "x"}, "b": {1.0: "y"}, "c": []})
    assert spec.as_dict() == {"a": ["x", "y"], "b": {1: "y"}, "c": {}}
    assert spec.job_tasks("b") == [None, "y"]
    assert repr(ClusterSpec({"b": ["y"], "a": ["x"]})) == "ClusterSpec({'a': ['x'], 'b': ['y']})"


def test_text_in_bytes_stays_bytes_as_in_tensorflow():
    spec = ClusterSpec({b"worker": [b"a:1"]})
    assert spec.as_dict() == {b"worker": [b"a:1"]}
    assert ClusterSpec(spec).as_dict() == {"worker": ["a:1"]}


def test_equality_is_that_of_jobs_and_it_has_no_hash():
    assert ClusterSpec({"worker": ["a:1"]}) == {"worker": {0: "a:1"}}
    assert ClusterSpec({"worker": ["a:1"]}) != {"worker": ["a:1"]}
    with pytest.raises(TypeError, match="unhashable"):
        hash(ClusterSpec({}))


@pytest.mark.parametrize(
    ("cluster", "kind", "path", "words"),
    [
        # cluster, builtin class of the error, place, words of it
        (None, TypeError, "$", "found None"),
        (["a:1"], TypeError, "$", "Corrected: ClusterSpec({'worker': ['a:1']})"),
        ({"worker": "a:1"}, TypeError, "$.worker", "Corrected: ClusterSpec({'worker': ['a:1']})"),
        ({"worker": 5}, TypeError, "$.worker", "found 5"),
        ({"worker": ["a:1", 2]}, TypeError, "$.worker[1]", "Task address 2 must be"),
        ({"worker": {0: None}}, TypeError, "$.worker[0]", "Task address None must be"),
        ({5: ["a:1"]}, TypeError, "$[5]", "Job name 5 must be"),
        ({b"worker": ["a:1"], "ps": []}, TypeError, "$[b'worker']", "all strings or all bytes"),
        ({"worker": {"x": "a:1"}}, ValueError, "$.worker.x", "base 10: 'x'"),
        ({"worker": {1.5: "a:1"}}, TypeError, "$.worker[1.5]", "must be integers"),
        ({"worker": {None: "a:1"}}, TypeError, "$.worker[None]", "must be integers"),
        ({"worker": {-1: "a:1"}}, ValueError, "$.worker[-1]", "out of range"),
        ({"worker": {2**31: "a:1"}}, ValueError, "$.worker[2147483648]", "out of range"),
        ({"worker": {"1": "a", 1: "b"}}, ValueError, "$.worker[1]", "has task 1 twice"),
        ({"worker": ["\ud800"]}, ValueError, "$.worker[0]", "is not valid Unicode"),
        ({"\ud800": ["a"]}, ValueError, "$['\\ud800']", "is not valid Unicode"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(cluster, kind, path, words):
    with pytest.raises(ClusterConfigError) as caught:
        ClusterSpec(cluster)
    assert isinstance(caught.value, kind)
    assert caught.value.path == path
    assert words in str(caught.value)
    assert f"at {path}: found" in str(caught.value)


@pytest.mark.parametrize("method", ["num_tasks", "task_indices", "job_tasks"])
def test_a_job_that_is_not_there_is_named_with_those_that_are(method):
    spec = ClusterSpec({"worker": ["a:1"], "ps": ["p:1"]})
    with pytest.raises(ValueError, match=r"No such job in cluster: 'nojob'. Its jobs: 'worker', 'ps'"):
        getattr(spec, method)("nojob")


def test_a_task_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"No task with index 9 in job 'worker'; its tasks: 0, 2$"):
        ClusterSpec({"worker": {0: "a:1", 2: "c:1"}}).task_address("worker", 9)


def test_a_list_of_no_tasks_or_of_too_many_is_refused():
    with pytest.raises(ValueError, match="it has no tasks"):
        ClusterSpec({"worker": []}).job_tasks("worker")
    with pytest.raises(ValueError, match="largest index is 2147483647: use task_indices"):
        ClusterSpec({"worker": {2**31 - 1: "a:1"}}).job_tasks("worker")


def test_large_values_are_shown_in_a_few_words():
    with pytest.raises(ClusterConfigError) as caught:
        ClusterSpec({"w" * 10**6: list(range(10**5))})
    assert len(str(caught.value)) < 1000
