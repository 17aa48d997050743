"""The fixtures of tests/cluster, for the rendezvous beneath it."""

from tests.cluster.conftest import name, processes  # noqa: F401
