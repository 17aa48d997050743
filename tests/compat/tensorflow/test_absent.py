"""A name that is not here says what to use instead; one that TensorFlow has not either says what is near."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.compat.tensorflow.absent import ALTERNATIVES
from ringlet.compat.tensorflow.names import TENSORFLOW_NAMES

ROOT = Path(__file__).resolve().parents[3]


def get(path):
    found = tf
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("tf.GradientTape", "use your framework's gradients, see docs/porting.md#gradients"),
        ("tf.nn.conv2d", "use your framework's models"),
        ("tf.distribute.cluster_resolver.LocalClusterResolver", "use ringlet.cluster_resolver.LocalClusterResolver"),
        ("tf.keras.Model", "docs/porting.md#gradients"),
        ("tf.meshgrid", "use numpy.meshgrid"),
        ("tf.compat.v1.Session", "there are no sessions"),
        ("tf.config.experimental.enable_op_determinism", "delete it"),
        ("tf.gather_nd", "x[i, j]"),
        ("tf.ensure_shape", "x.shape"),
        ("tf.data.Dataset.ragged_batch", "padded_batch"),
        ("tf.config.threading", "delete it"),
        ("tf.linalg.svd", "use numpy.linalg.svd"),
        ("tf.math.bincount", "use numpy.bincount"),
        ("tf.random.gamma", "numpy.random.default_rng"),
        ("tf.distribute.experimental.PreemptionWatcher", "use tf.distribute.experimental.PreemptionCheckpointHandler"),
        ("tf.io.decode_png", "use pathlib and numpy"),
        ("tf.io.gfile", "os.makedirs(path, exist_ok=True)"),
    ],
)
def test_a_name_of_tensorflow_says_what_to_use_instead(path, told):
    with pytest.raises(AttributeError, match=re.escape(f"ringlet has no {path}: ")) as caught:
        get(path)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("tf.constnat", "constant"),
        ("tf.distribute.MirorredStrategy", "MirroredStrategy"),
        ("tf.data.Datset", "Dataset"),
        ("tf.nest.flattn", "flatten"),
        ("tf.errors.OutOfRange", "OutOfRangeError"),
        ("tf.data.experimental.AutoShardPolcy", "AutoShardPolicy"),
    ],
)
def test_a_name_that_nobody_has_says_which_are_near(path, near):
    with pytest.raises(AttributeError, match="TensorFlow's module does not have it") as caught:
        get(path)
    assert near in str(caught.value).partition("nearest available names")[2]


def namespaces():
    for path in TENSORFLOW_NAMES:
        try:
            yield path, get(path)
        except AttributeError:
            continue


def test_every_name_of_tensorflow_is_there_or_refused_with_words():
    seen = 0
    for path, namespace in namespaces():
        for name in TENSORFLOW_NAMES[path]:
            seen += 1
            try:
                getattr(namespace, name)
            except AttributeError as error:
                assert f"ringlet has no {path}.{name}" in str(error)  # noqa: PT017  # most names are there
    assert seen > 500


def test_every_function_of_numpy_that_is_named_exists():
    for path, text in ALTERNATIVES.items():
        for name in re.findall(r"numpy\.([\w.]+\w)", text):
            assert functools.reduce(getattr, name.split("."), np), path


def test_every_name_of_the_alternatives_exists():
    for path, text in ALTERNATIVES.items():
        for name in re.findall(r"\btf\.[\w.]+\w", text):
            assert get(name) is not None, path


def test_a_dataset_has_no_name_that_nobody_has():
    for dataset in (tf.data.Dataset, tf.data.Dataset.range(1)):
        with pytest.raises(AttributeError, match="'Dataset' has no attribute 'nonsense'"):
            dataset.nonsense  # noqa: B018  # what is refused


def test_the_version_is_the_one_whose_names_these_are():
    assert tf.__version__.startswith("2.")


def test_no_alternative_is_given_for_what_is_there():
    for path in ALTERNATIVES.keys() - TENSORFLOW_NAMES.keys():  # a namespace stands for what is absent in it
        with pytest.raises(AttributeError):
            get(path)


def test_no_name_is_added_to_a_namespace_of_tensorflow():
    for path, namespace in namespaces():
        public = {name for name in dir(namespace) if not name.startswith("_")}
        assert public <= TENSORFLOW_NAMES[path], path


def test_the_part_of_the_document_that_errors_name_exists():
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / "porting.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert "Gradients" in headings


def test_hasattr_tells_what_is_there():
    assert hasattr(tf, "constant")
    assert not hasattr(tf, "GradientTape")
