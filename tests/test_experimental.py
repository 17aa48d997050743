"""``ringlet.experimental`` has the supported names of ``tf.distribute.experimental``."""

from __future__ import annotations

import ringlet
from ringlet import collectives, experimental
from ringlet.strategy.api import central_storage_strategy
from ringlet.strategy.calls import value_context


def test_names_are_those_of_their_modules():
    assert experimental.CentralStorageStrategy is central_storage_strategy.CentralStorageStrategy
    assert experimental.ValueContext is value_context.ValueContext
    assert experimental.CommunicationOptions is collectives.CommunicationOptions
    assert experimental.CollectiveHints is collectives.CollectiveHints
    assert experimental.CollectiveCommunication is experimental.CommunicationImplementation
    assert ringlet.experimental is experimental
    assert set(experimental.__all__) <= set(dir(experimental))
