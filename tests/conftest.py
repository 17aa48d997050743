"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

# Before anything is allocated: what is read before it is written is wrong in every test.
os.environ["RINGLET_POISON"] = "1"
# Also before NumPy is imported: idle threads of OpenBLAS otherwise spin for a tenth of a second in each process.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# A deadline per example would fail on a machine that is busy; pytest-timeout bounds every test instead. Few examples,
# so that all tests take minutes, and the same in each run, so that a change fails for what it changed; `.ci/nightly`
# has the profile with many, which are random.
settings.register_profile("default", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2000, print_blob=True)
# Ten thousand, and a million, random calls of sharded arrays: 49 functions in tests/sharding/test_random_calls.py.
settings.register_profile("ten_thousand", deadline=None, max_examples=205, print_blob=True)
settings.register_profile("million", deadline=None, max_examples=20_500, print_blob=True)
# What sanitizers slow down many times over. They look for wrong memory, which a few examples of each test reach.
settings.register_profile("sanitizer", deadline=None, max_examples=5, derandomize=True)
settings.load_profile("default")

# A shell that starts programs in the background has them ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist, `-n auto` is unknown
def pytest_xdist_auto_num_workers():
    """Return one worker more than there are cores, because tests wait for processes for a fifth of their time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_finish():
    """Exempt the collected tests from garbage collection, which otherwise takes a sixth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _what_a_module_leaves_is_exempt_too():
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _number_of_devices_is_chosen_for_one_test():
    yield
    module = sys.modules.get("ringlet.devices.logical_devices")
    if module is not None:
        module._DEVICES._asked = None
