"""ChiefLogFilter: the chief's records, and everybody's from WARNING on, with the name of who made them."""

from __future__ import annotations

import logging

import pytest

import ringlet
from tests.rank_zero.test_process_role import config


@pytest.fixture
def log():
    """A logger, and what its handler lets pass: worker, level and message of each record."""
    logger = logging.getLogger("tests.helpers.log_filter")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    passed = []

    class Keeping(logging.Handler):
        def emit(self, record):
            passed.append((record.worker, record.levelname, record.getMessage()))

    handler = Keeping()
    handler.addFilter(ringlet.ChiefLogFilter())
    logger.addHandler(handler)
    yield logger, passed
    logger.removeHandler(handler)


def test_the_chief_is_heard_at_all_levels(log):
    logger, passed = log
    logger.debug("a")
    logger.error("b")
    assert passed == [("w0", "DEBUG", "a"), ("w0", "ERROR", "b")]


def test_other_processes_are_heard_from_warning_on(log, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    logger, passed = log
    logger.info("not this")
    logger.warning("this")
    assert passed == [("w2", "WARNING", "this")]


def test_a_record_may_ask_to_pass_on_every_worker(log, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))
    logger, passed = log
    logger.info("how much memory I have", extra={"every_worker": True})
    assert passed == [("w1", "INFO", "how much memory I have")]


def test_of_many_replicas_one_is_heard_and_named(log):
    logger, passed = log
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    strategy.run(lambda: logger.info("once"))
    strategy.run(lambda: logger.warning("from all"))
    assert passed[0] == ("w0/r0", "INFO", "once")
    assert sorted(passed[1:]) == [("w0/r0", "WARNING", "from all"), ("w0/r1", "WARNING", "from all")]


def test_a_replica_that_is_alone_has_no_name_of_its_own(log):
    logger, passed = log
    ringlet.OneDeviceStrategy("CPU:0").run(lambda: logger.info("alone"))
    assert passed == [("w0", "INFO", "alone")]


def test_another_level_may_be_chosen(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))
    record = logging.LogRecord("a", logging.WARNING, "file", 1, "text", (), None)
    assert not ringlet.ChiefLogFilter(level=logging.ERROR).filter(record)


def test_loggers_of_another_name_are_let_pass(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))
    record = logging.LogRecord("other", logging.INFO, "file", 1, "text", (), None)
    assert ringlet.ChiefLogFilter(name="training").filter(record)
    record.name = "training.loss"
    assert not ringlet.ChiefLogFilter(name="training").filter(record)


def test_an_environment_that_cannot_be_read_hides_no_record(log, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "no JSON")
    logger, passed = log
    logger.info("text")
    assert passed == [("w?", "INFO", "text")]
