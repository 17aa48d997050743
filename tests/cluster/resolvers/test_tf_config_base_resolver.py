"""What resolvers share that read a configuration of the form of TF_CONFIG."""

from __future__ import annotations

import os

import pytest

from ringlet.cluster.resolvers.tf_config_base_resolver import TFConfigBaseResolver, environ_or_own
from ringlet.cluster.tf_config_parser import TFConfig
from ringlet.errors import ClusterConfigError
from tests.cluster.contract import ResolverContract

CONFIG = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'


class FileResolver(TFConfigBaseResolver):
    """Reads the text from another place."""

    text = CONFIG

    def _config(self):
        return TFConfig.of(self.text)


class TestAResolverOverAConfiguration(ResolverContract):
    def make(self):
        return FileResolver()


def test_the_configuration_is_read_whenever_something_is_asked():
    resolver = FileResolver()
    assert resolver.task_id == 1
    resolver.text = CONFIG.replace('"index": 1', '"index": 0')
    assert resolver.task_id == 0


def test_a_task_of_the_program_goes_before_the_one_of_the_configuration():
    resolver = FileResolver("worker", 0)
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("worker", 0, "a:1")
    resolver.task_id = 7
    with pytest.raises(ClusterConfigError, match=r"No task with index 7 in job 'worker'; its tasks: 0, 1$"):
        resolver.master()


def test_the_environment_is_that_of_the_process_unless_one_is_given():
    given = {"A": "b"}
    assert environ_or_own(given) is given
    assert environ_or_own(None) is os.environ
