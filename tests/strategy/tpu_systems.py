"""TPU systems for tests: modelled slices, and strategies on them."""

from __future__ import annotations

from collections.abc import Sequence

import ringlet


def resolver_of(accelerator_type: str = "v4-8") -> ringlet.cluster_resolver.TPUClusterResolver:
    """Return a resolver of one slice, independent of the environment."""
    return ringlet.cluster_resolver.TPUClusterResolver(accelerator_type=accelerator_type, environ={})


def strategy_of(
    shape: Sequence[int], num_replicas: int, accelerator_type: str = "v4-8", is_spmd: bool = False
) -> ringlet.TPUStrategy:
    """Return a strategy whose replicas have cores of a given shape."""
    resolver = resolver_of(accelerator_type)
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, shape, num_replicas=num_replicas)
    return ringlet.TPUStrategy(resolver, assignment, is_spmd)
