"""BLAS threads are limited while replicas run, and are what they were afterwards."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController

import ringlet
from ringlet.devices.blas_threads import BlasLibrary, BlasLimiter, functions_of, loaded_libraries


class FakeLibrary:
    """A library that remembers what was set."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.history = [threads]

    def set_threads(self, count: int) -> None:
        self.threads = count
        self.history.append(count)

    def as_library(self, is_per_thread: bool = False) -> BlasLibrary:
        return BlasLibrary(lambda: self.threads, self.set_threads, is_per_thread)


def limiter(*fakes: FakeLibrary, cores: int = 8, environment: dict[str, str] | None = None) -> BlasLimiter:
    libraries = [fake.as_library() for fake in fakes]
    return BlasLimiter(environment or {}, cores, lambda: libraries, modules=())


@pytest.mark.parametrize(("cores", "replicas", "limit"), [(8, 2, 4), (8, 3, 2), (8, 8, 1), (2, 8, 1), (64, 2, 16)])
def test_each_replica_has_its_share_of_the_cores(cores, replicas, limit):
    fake = FakeLibrary(16)
    limits = limiter(fake, cores=cores)
    limits.enter("run", replicas)
    assert fake.threads == limit
    limits.leave("run")
    assert fake.threads == 16


def test_a_smaller_number_of_the_user_stays():
    fake = FakeLibrary(1)
    limits = limiter(fake)
    limits.enter("run", 2)
    limits.leave("run")
    assert fake.history == [1]


def test_what_the_user_sets_between_runs_is_restored():
    fake = FakeLibrary(8)
    limits = limiter(fake)
    for threads in (8, 6):
        fake.threads = threads
        limits.enter("run", 2)
        assert fake.threads == 4
        limits.leave("run")
        assert fake.threads == threads


@pytest.mark.parametrize("first_to_leave", [2, 4])
def test_concurrent_runs_share_the_cores_and_the_last_one_restores(first_to_leave):
    fake = FakeLibrary(8)
    limits = limiter(fake)
    limits.enter(2, 2)
    limits.enter(4, 4)
    assert fake.threads == 1
    limits.leave(first_to_leave)
    assert fake.threads == 1
    limits.leave(6 - first_to_leave)
    limits.leave("a run that never entered")
    assert fake.threads == 8


def test_a_run_that_leaves_twice_counts_once():
    fake = FakeLibrary(8)
    limits = limiter(fake)
    for run in ("one", "other"):
        limits.enter(run, 2)
    for _ in range(2):
        limits.leave("one")
    assert fake.threads == 2
    limits.leave("other")
    assert fake.threads == 8


def test_a_forked_child_starts_without_a_limit():
    fake = FakeLibrary(8)
    limits = limiter(fake)
    limits.enter("run", 2)
    limits.forget()
    assert fake.threads == 8
    limits.leave("run")  # by a run that the child inherited
    limits.enter("run", 4)
    assert fake.threads == 2


@pytest.mark.parametrize(("text", "during"), [("3", 3), ("12", 12), ("0", 8), (" ", 4)])
def test_the_environment_overrides(text, during):
    fake = FakeLibrary(8)
    limits = limiter(fake, environment={"RINGLET_BLAS_THREADS": text})
    limits.enter("run", 2)
    assert fake.threads == during
    limits.leave("run")
    assert fake.threads == 8


@pytest.mark.parametrize("text", ["-1", "two", "1.5"])
def test_a_bad_variable_is_named(text):
    with pytest.raises(ValueError, match=f"RINGLET_BLAS_THREADS is the number .* got '{text}'"):
        limiter(environment={"RINGLET_BLAS_THREADS": text})


def test_libraries_are_searched_again_only_after_further_imports():
    searches: list[int] = []
    modules = ["numpy"]

    def find() -> list[BlasLibrary]:
        searches.append(len(modules))
        return []

    limits = BlasLimiter({}, 8, find, modules)
    for _ in range(3):
        limits.enter("run", 2)
        limits.leave("run")
    modules.append("scipy")
    limits.enter("run", 2)
    assert searches == [1, 2]


def test_helper_threads_limit_the_libraries_that_count_by_thread():
    shared, by_thread = FakeLibrary(8), FakeLibrary(8)
    limits = BlasLimiter({}, 8, lambda: [shared.as_library(), by_thread.as_library(is_per_thread=True)], ())
    limits.enter("run", 4)
    limits.leave("run")
    limits.limit_this_thread(4)
    assert (shared.threads, by_thread.threads) == (8, 2)


@pytest.mark.parametrize(
    ("kind", "layer", "names", "is_per_thread"),
    [
        ("openblas", "pthreads", ("openblas_get_num_threads", "openblas_set_num_threads"), False),
        ("openblas", "pthreads", ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"), False),
        ("openblas", "openmp", ("omp_get_max_threads", "omp_set_num_threads"), True),
        ("mkl", "intel", ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"), False),
        ("blis", "openmp", ("bli_thread_get_num_threads", "bli_thread_set_num_threads"), True),
    ],
)
def test_the_functions_of_every_library_are_found(kind, layer, names, is_per_thread):
    def get_threads() -> int:
        return 5

    def set_threads(count: int) -> Any:
        return count

    library = SimpleNamespace(**dict(zip(names, (get_threads, set_threads), strict=True)))
    assert functions_of(kind, layer, library) == BlasLibrary(get_threads, set_threads, is_per_thread)


def test_a_library_without_known_functions_is_left_alone():
    assert functions_of("openblas", "pthreads", SimpleNamespace()) is None


# --- the real ones --------------------------------------------------------------------------------------------------


def test_numpys_own_library_is_found():
    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    if not controllers:
        pytest.skip("this NumPy has no BLAS library of its own")
    assert len(loaded_libraries()) == len(controllers)


REAL = """
import json, sys, numpy as np, ringlet
from threadpoolctl import ThreadpoolController

def threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]

def step():
    ringlet.get_replica_context().all_reduce("SUM", np.ones(2))
    return threads()

before = threads()
strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(64)])
inside = strategy.run(lambda: ringlet.get_replica_context().merge_call(lambda _: threads()))
after = threads()
try:
    strategy.run(lambda: 1 // 0)
except ZeroDivisionError:
    pass
print(json.dumps([before, inside, after, threads()]))
"""


def test_replicas_multiply_on_one_thread_each_and_the_program_on_all():
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, timeout=60, check=True)
    before, inside, after, after_failure = ringlet_json(done.stdout)
    assert inside == [1] * len(before)
    assert before == after == after_failure


def ringlet_json(text: str) -> Any:
    import json

    return json.loads(text)


def test_one_replica_is_not_limited():
    controller = ThreadpoolController().select(user_api="blas")
    strategy = ringlet.MirroredStrategy(["CPU:0"])
    before = [library.num_threads for library in controller.lib_controllers]
    assert strategy.run(lambda: [library.num_threads for library in controller.lib_controllers]) == before
