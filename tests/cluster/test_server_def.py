"""ServerDef: the bytes of TensorFlow's message."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec, ServerDef

LOCAL = ClusterSpec({"localhost": ["localhost:0"]}).as_cluster_def()


@pytest.mark.parametrize(
    ("message", "data"),
    [
        # message, bytes that tensorflow 2.21's ServerDef of the same gives
        (ServerDef(), ""),
        (
            ServerDef(LOCAL, "localhost", 0, "grpc"),
            "0a1e0a1c0a096c6f63616c686f7374120f0800120b6c6f63616c686f73743a3012096c6f63616c686f73742a0467727063",
        ),
        (ServerDef(LOCAL, "", 300), "0a1e0a1c0a096c6f63616c686f7374120f0800120b6c6f63616c686f73743a3018ac02"),
    ],
)
def test_the_bytes_are_those_of_tensorflow(message, data):
    assert message.SerializeToString(deterministic=True).hex() == data
