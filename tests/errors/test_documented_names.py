"""Internal subclasses of documented exceptions: what tracebacks show, and that pickles keep the class."""

from __future__ import annotations

import pickle
import traceback

import pytest

import ringlet
from ringlet.cluster.config_errors import ClusterConfigJSONError, ClusterConfigTypeError
from ringlet.compat.tensorflow.operators import DtypeError
from ringlet.data.graph.mapped_stream import RestoredError
from ringlet.errors import ClusterConfigError
from ringlet.ipc.pickle_codec import Unsendable


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        # exception, its name in a traceback
        (ClusterConfigTypeError("wrong", "$.cluster"), "ringlet.errors.ClusterConfigError"),
        (ClusterConfigJSONError("Expecting value", "{]", 1, "Write JSON."), "ringlet.errors.ClusterConfigError"),
        (DtypeError("wrong"), "ringlet.errors.InvalidArgumentError"),
        (Unsendable("wrong"), "TypeError"),
        (RestoredError("wrong"), "RuntimeError"),
        (ringlet.tpu.CoordinateError("wrong"), "ringlet.errors.CoordinateError"),
    ],
)
def test_a_traceback_shows_the_documented_name(error, shown):
    [line] = traceback.format_exception_only(type(error), error)
    assert line.startswith(f"{shown}: ")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def test_each_is_still_of_all_its_classes():
    with pytest.raises(ClusterConfigError) as caught:
        ringlet.cluster_resolver.TFConfigClusterResolver(environ={"TF_CONFIG": "{]"}).cluster_spec()
    assert isinstance(caught.value, ClusterConfigJSONError)
    assert caught.type.__name__ == "ClusterConfigError"
