"""The text of TF_CONFIG: every fault is a ClusterConfigError with its place, what was found, and a corrected text."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import re
import shlex
import time

import pytest

from ringlet.cluster import TFConfigClusterResolver
from ringlet.cluster.tf_config_parser import TFConfig
from ringlet.errors import ClusterConfigError

# Texts that are made by chance; the whole number before a release.
FUZZED = int(os.environ.get("RINGLET_MUTATIONS", "1000000" if os.environ.get("RINGLET_CI_NIGHTLY") else "10000"))
MOST_SECONDS = 0.01  # for one of them

GOOD = {
    "cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": {"0": "p:1", "3": "q:1"}},
    "task": {"type": "worker", "index": 1},
    "rpc_layer": "grpc",
}


def ask_everything(text):
    """Put every question to a text; give the errors."""
    resolver = TFConfigClusterResolver(environ={"TF_CONFIG": text})
    questions = [
        lambda: resolver.task_type,
        lambda: resolver.task_id,
        lambda: resolver.rpc_layer,
        resolver.cluster_spec,
        resolver.master,
        lambda: resolver.cluster_spec().as_dict(),
        lambda: repr(resolver.cluster_spec()),
        lambda: resolver.cluster_spec().as_cluster_def().SerializeToString(),
        lambda: [resolver.cluster_spec().job_tasks(job) for job in resolver.cluster_spec().jobs],
    ]
    errors = []
    for question in questions:
        try:
            question()
        except ClusterConfigError as error:
            errors.append(error)
    return errors


def the_error(text):
    errors = ask_everything(text)
    assert errors, f"{text[:200]} is fine"
    return errors[0]


@pytest.mark.parametrize(
    ("text", "kind", "path", "words"),
    [
        # TF_CONFIG, class that TensorFlow raises, place, words of the error
        ("", json.JSONDecodeError, "$", "TF_CONFIG is empty: unset it"),
        (
            "not json",
            json.JSONDecodeError,
            "$",
            "Expecting value: line 1 column 1 (char 0). TF_CONFIG, at $: found 'not",
        ),
        ("{'cluster': {}}", json.JSONDecodeError, "$", "JSON requires double quotes"),
        ("3", TypeError, "$", "found 3; allowed: an object"),
        ("null", TypeError, "$", "found 'null'; allowed: an object"),
        ('["cluster"]', TypeError, "$", "found ['cluster']; allowed: an object"),
        ('"cluster"', TypeError, "$", "found 'cluster'; allowed: an object"),
        ('{"cluster": ["a:1"]}', TypeError, "$.cluster", 'Corrected: TF_CONFIG=\'{"cluster": {"worker": ["a:1"]}}'),
        ('{"cluster": {"worker": "a:1"}}', TypeError, "$.cluster.worker", "found 'a:1'; allowed: a list of addresses"),
        ('{"cluster": {"worker": ["a:1", 2]}}', TypeError, "$.cluster.worker[1]", "found 2; allowed: a string"),
        ('{"cluster": {"worker": {"x": "a:1"}}}', ValueError, "$.cluster.worker.x", "base 10: 'x'"),
        ('{"cluster": {"a job": 3}}', TypeError, "$.cluster['a job']", "found 3"),
        ('{"cluster": {"worker": ["a:1"], "worker": ["b:1"]}}', ValueError, "$.cluster.worker", "occurs twice"),
        ('{"cluster": {}, "cluster": {}}', ValueError, "$.cluster", "occurs twice"),
        ('{"cluster": {}, "task": "worker"}', TypeError, "$.task", "found 'worker'; allowed: {"),
        ('{"cluster": {}, "task": {"type": ["worker"]}}', TypeError, "$.task.type", "found ['worker']"),
        ('{"cluster": {}, "task": {"index": "x"}}', ValueError, "$.task.index", "found 'x'; allowed: an integer"),
        ('{"cluster": {"w": 5}, "task": {"type": "w", "index": "x"}}', ValueError, "$.task.index", "found 'x'"),
        ('{"cluster": {}, "task": {"type": [], "index": "x"}}', TypeError, "$.task.type", "found []"),
        ('{"cluster": {}, "task": {"index": 1.5}}', ValueError, "$.task.index", "task 1.5 does not exist"),
        ('{"cluster": {}, "task": {"index": true}}', TypeError, "$.task.index", "found True"),
        ('{"cluster": {}, "task": {"index": 1e999}}', ValueError, "$.task.index", "found inf"),
        ('{"cluster": {}, "rpc_layer": 3}', TypeError, "$.rpc_layer", "found 3; allowed: a string"),
        ('{"cluster": {"worker": ["\\ud800"]}}', ValueError, "$.cluster.worker[0]", "is not valid Unicode"),
        ("[" * 100_000, ValueError, "$", "recursion"),
        ('{"cluster": ' * 50_000, ValueError, "$", "TF_CONFIG, at $"),
        ("1" * 5000, ValueError, "$", "4300 digits"),
    ],
)
def test_a_fault_is_named_with_its_place_and_what_is_allowed(text, kind, path, words):
    error = the_error(text)
    assert isinstance(error, kind)
    assert error.path == path
    assert words in str(error)
    assert re.search(r"TF_CONFIG='\{.*\}'$", str(error)), "an example stands at the end"


@pytest.mark.parametrize(
    ("text", "name", "nearest"),
    [
        # TF_CONFIG, what is asked of it, the key in the message
        ('{"clusters": {"worker": ["a:1"]}, "rpc_layer": "grpc"}', "cluster_spec", "'cluster'"),
        ('{"Cluster": {"worker": ["a:1"]}}', "cluster_spec", "'cluster'"),
        ('{"cluster": {"worker": ["a:1"]}, "tasks": {"type": "worker"}}', "task_type", "'task'"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"typ": "worker", "index": 0}}', "task_type", "'type'"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "idx": 0}}', "task_id", "'index'"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "id": 0}}', "task_id", "'index'"),
    ],
)
def test_a_misspelt_key_is_named_with_the_nearest_one(text, name, nearest):
    with pytest.raises(ClusterConfigError, match=f"is unknown, the nearest key is {nearest}") as caught:
        getattr(TFConfig.of(text), name)
    better = re.search(r"Corrected: TF_CONFIG='(.*)'$", str(caught.value))[1]
    assert nearest.strip("'") in str(json.loads(better))
    getattr(TFConfig.of(better), name)


def test_keys_of_other_tools_are_not_misspelt():
    assert not TFConfig.of('{"environment": "cloud", "job": "{}", "master": "", "service": {}}').cluster_spec


@pytest.mark.parametrize(
    ("text", "task_type", "task_id"),
    [
        # TF_CONFIG, what is read of it: what TensorFlow reads
        ("[]", None, None),
        ('{"task": {}}', None, None),
        ('{"task": []}', None, None),
        ('{"task": {"type": "worker", "index": "1"}}', "worker", 1),
        ('{"task": {"type": 3, "index": 2.0}}', "3", 2),
        ('{"task": {"type": null, "index": null}}', None, None),
    ],
)
def test_what_can_be_meant_is_read(text, task_type, task_id):
    config = TFConfig.of(text)
    assert (config.task_type, config.task_id) == (task_type, task_id)


@pytest.mark.parametrize(
    "text",
    [
        '{"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": ["a:1", "b:1"], "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 7}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": "one"}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0.5}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": 0}',
        "",
        "{'cluster': {'worker': ['a:1']}}",
    ],
)
def test_the_corrected_text_can_be_put_into_a_shell_and_is_right(text):
    example = re.search(r"TF_CONFIG='.*'$", str(the_error(text)))
    name, _, better = shlex.split(example[0])[0].partition("=")
    assert name == "TF_CONFIG"
    assert ask_everything(better) == []


def test_an_error_survives_pickling():
    for text in ("", '{"cluster": {"worker": 5}}'):
        error = the_error(text)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), error.path)


def test_a_text_of_a_megabyte_is_read_and_its_faults_are_short():
    addresses = [f"host{i:05}.example.com:2222" for i in range(36_000)]
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 35_999}}
    text = json.dumps(config)
    assert len(text) > 10**6
    resolver = TFConfigClusterResolver(environ={"TF_CONFIG": text})
    assert resolver.cluster_spec().num_tasks("worker") == 36_000
    assert resolver.master() == addresses[-1]
    for wrong in (
        {"cluster": {"worker": "x" * 10**6}},
        {"cluster": {"x" * 10**6: 3}},
        {"cluster": {"worker": [*addresses, None]}},
        {"cluster": {"worker": addresses}, "task": {"type": "w" * 10**6, "index": 0}},
        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": "9" * 10**6}},
    ):
        assert len(str(the_error(json.dumps(wrong)))) < 1500
    assert len(str(the_error(text[:-1]))) < 1500


def test_a_text_that_was_read_is_not_read_again():
    text = json.dumps({**GOOD, "note": "once"})
    assert TFConfig.of(text) is TFConfig.of("".join(text))


# --- E1: texts made by chance -----------------------------------------------------------------------------------------

SCALARS = [None, True, False, 0, 1, -1, 1.5, 1e308, 2**31, 2**70, "", "worker", "chief", "a:1", "0", "x", "\ud800", "é"]
STRUCTURES = [[], {}, ["a:1"], {"0": "a:1"}, [[]], {"worker": ["a:1"]}, {"type": "worker"}, {"5": "a", "05": "b"}]
KEYS = [
    "cluster",
    "task",
    "worker",
    "chief",
    "ps",
    "evaluator",
    "type",
    "index",
    "session_master",
    "rpc_layer",
    "0",
    "",
]


def places(value, keys=()):
    yield keys
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from places(child, (*keys, key))


def with_another_value(rng, config):
    """Put something else at one place, or a new name into one object."""
    keys = rng.choice(list(places(config)))
    value = copy.deepcopy(rng.choice(rng.choice([SCALARS, STRUCTURES])))
    if not keys:
        return value
    parent = config
    for key in keys[:-1]:
        parent = parent[key]
    if isinstance(parent, dict) and rng.random() < 0.3:
        parent[rng.choice(KEYS)] = value
    else:
        parent[keys[-1]] = value
    return config


def with_other_characters(rng, text):
    """Cut something out, or write something in."""
    at = rng.randrange(len(text) + 1)
    piece = rng.choice(['"', "{", "}", "[", "]", ",", ":", "'", "\\", "\x00", "NaN", "1e999", '"a":1,', "\udc80"])
    return text[:at] + piece + text[at + rng.randrange(4) :]


def fuzzed(rng):
    config = copy.deepcopy(GOOD)
    for _ in range(rng.randrange(1, 4)):
        config = with_another_value(rng, config)
    text = json.dumps(config)
    for _ in range(rng.choice([0, 0, 1, 2])):
        text = with_other_characters(rng, text)
    return text


@pytest.mark.timeout(max(120, FUZZED // 200))  # each takes half a millisecond, and longer beside other work
@pytest.mark.slow
def test_texts_made_by_chance_raise_nothing_else_and_take_no_time():
    rng = random.Random(20)
    for _ in range(FUZZED):
        text = fuzzed(rng)
        begin = time.thread_time()
        errors = ask_everything(text)
        seconds = time.thread_time() - begin
        for error in errors:
            assert error.path.startswith("$"), text
            assert len(str(error)) < 1500, text
        # The best of some, for the machine may be busy.
        if seconds > MOST_SECONDS:
            seconds = min(_seconds(text) for _ in range(5))
        assert seconds < MOST_SECONDS, text


def _seconds(text):
    TFConfig.of.cache_clear()
    begin = time.thread_time()
    ask_everything(text)
    return time.thread_time() - begin
