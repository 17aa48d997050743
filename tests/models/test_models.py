"""The models of the protocols: no run breaks a property, and each guard and each memory order is needed.

README.md says what is modelled. SPIN searches the ``.pml`` files, relacy runs the headers in ``weak_memory.cpp``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HEADERS = HERE.parents[1] / "cpp" / "ringlet" / "sync"
NIGHTLY = "RINGLET_CI_NIGHTLY" in os.environ
OPTIMIZE = "-O1" if NIGHTLY else "-O0"  # small searches take less time than their compilation
RELACY = Path("/usr/include/relacy/relacy.hpp")

needs_spin = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None, reason="needs spin and gcc: apt-get install spin gcc"
)
needs_relacy = pytest.mark.skipif(
    not RELACY.exists() or shutil.which("g++") is None, reason="needs relacy and g++: apt-get install relacy-dev g++"
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 if NIGHTLY else 400)]

# The sizes at which a model is searched, and those for the nightly run. The first is the one for the guards.
SIZES = {
    "calls": (["N=2 CALLS=3", "N=3 CALLS=1"], ["N=3 CALLS=2"]),
    "work": (["N=2"], ["N=3"]),
    "holds": (["N=3"], []),
    "failure": (["N=3"], ["N=4"]),
    "spread": ([""], []),
    "membership": (["N=2", "N=3"], []),
    "coordinator": (["K=2"], ["K=3"]),
}
# Guards that only show at another size.
GUARD_SIZES = {"NO_LOOK_FOR_LEAVERS_LAST": "N=3 CALLS=1"}
CASES = [(model, size) for model, (sizes, larger) in SIZES.items() for size in [*sizes, *(larger if NIGHTLY else [])]]

# Ordered accesses that may be relaxed without a wrong run: the text of the line, and the reason.
ORDERS_NOT_NEEDED = {
    "return signal_.load();": "the kernel compares the word again before a thread sleeps",
    "signal_.fetch_add(1);": "the kernel's lock orders it before the sleeper's comparison",
    "sleepers_.fetch_sub(1);": "a count that is too high costs a system call",
    "std::uint64_t seen = word_.load();": "the exchange of Gate::decide alone decides; flags and slots order the rest",
    "if (word_.compare_exchange_weak(seen, decision)) return bit == kGoesBit;": "the same",
    "word_.fetch_add(holds);": "only the owner looks for zero: it has added, or each adder has left the call",
}
# Ordered accesses without a case.
NOT_RUN = {
    "bool is_claimed() const noexcept { return word_.load() != 0; }": "who reads the text of the claim calls claimed()",
    "std::uint64_t sequence() const noexcept { return sequence_.load(); }": "for the text of an error",
    "bool claim() noexcept { return !value_.exchange(true); }": "for two threads of one program that misuse a rank",
    "void clear() noexcept { word_.store(0); }": "of a block that no process uses",
}


def guards_of(model: str) -> list[str]:
    text = (HERE / f"{model}.pml").read_text()
    return sorted(set(re.findall(r"#ifn?def (NO_\w+)", text)))


def search(
    folder: Path, model: str, definitions: Sequence[str], *, options: Sequence[str] = (), run: Sequence[str] = ()
) -> str:
    """Return what the verifier of SPIN reports."""
    folder.mkdir(parents=True)
    defined = [f"-D{definition}" for definition in definitions]

    def call(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    call("spin", "-a", *defined, str(HERE / f"{model}.pml"))
    call("gcc", "-w", "-DMEMLIM=3000", *options, "-o", "pan", "pan.c")
    # The hash table has as many slots as a small search has states: a larger one takes longer to clear than to use.
    report = call("./pan", "-m100000", "-w24" if NIGHTLY else "-w18", *run)
    assert "max search depth too small" not in report, report
    return report


def is_right(report: str) -> bool:
    found = re.search(r"errors: (\d+)", report)
    assert found is not None, report
    return found[1] == "0" and "out of memory" not in report


@needs_spin
@pytest.mark.parametrize(("model", "size"), CASES)
def test_no_run_of_a_model_breaks_a_property_or_waits_for_ever(tmp_path: Path, model: str, size: str) -> None:
    report = search(tmp_path / "model", model, size.split(), options=[OPTIMIZE, "-DSAFETY"])
    assert is_right(report), report


@needs_spin
@pytest.mark.skipif(not NIGHTLY, reason="half a minute: nightly only")
@pytest.mark.parametrize("model", SIZES)
def test_no_run_of_a_model_goes_on_for_ever(tmp_path: Path, model: str) -> None:
    size = SIZES[model][0][0].replace("CALLS=3", "CALLS=2")
    report = search(tmp_path / "model", model, size.split(), options=[OPTIMIZE, "-DNP", "-DNOFAIR"], run=["-l"])
    assert is_right(report), report


@needs_spin
@pytest.mark.parametrize("model", SIZES)
def test_each_guard_of_a_model_is_needed(tmp_path: Path, model: str) -> None:
    def holds_without(guard: str) -> bool:
        size = GUARD_SIZES.get(guard, SIZES[model][0][0])
        return is_right(search(tmp_path / guard, model, [*size.split(), guard], options=["-O0", "-DSAFETY"]))

    guards = guards_of(model)
    assert guards
    with ThreadPoolExecutor(2) as pool:
        not_needed = [guard for guard, holds in zip(guards, pool.map(holds_without, guards), strict=True) if holds]
    assert not_needed == []


# --- the memory model -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weak_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("relacy") / "weak_memory"
    include = f"-I{HEADERS.parents[1]}"
    command = ["g++", "-std=c++20", OPTIMIZE, "-w", include, "-o", str(program), str(HERE / "weak_memory.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def lines_of(program: Path, *arguments: str, schedules: int | str = 20_000) -> list[str]:
    environ = os.environ | {"RINGLET_RELACY_SCHEDULES": str(schedules)}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout.splitlines()


def text_of(site: str) -> str:
    """Return the line of a site, such as ``gate.hpp:37``."""
    name, _, number = site.partition(":")
    (path,) = HERE.glob(name) if name.endswith(".cpp") else HEADERS.rglob(name)
    return path.read_text().splitlines()[int(number) - 1].partition("//")[0].strip()


@needs_relacy
def test_no_order_of_loads_and_stores_breaks_a_case(weak_memory: Path) -> None:
    answers = lines_of(weak_memory, schedules=1_000_000 if NIGHTLY else 20_000)
    assert len(answers) > 8
    assert [answer for answer in answers if not answer.endswith(" ok")] == []


@needs_relacy
def test_the_search_of_all_orders_finds_no_broken_case(weak_memory: Path) -> None:
    cases = [line.partition(" ")[0] for line in lines_of(weak_memory, schedules=100)]
    long = ("gate", "work_queue")  # minutes
    searched = [case for case in cases if NIGHTLY or case not in long]
    assert [lines_of(weak_memory, case, schedules="all") for case in searched] == [[f"{case} ok"] for case in searched]


@needs_relacy
def test_each_memory_order_is_needed(weak_memory: Path) -> None:
    cases = [line.partition(" ")[0] for line in lines_of(weak_memory, schedules=100)]
    runs = [(case, site) for case in cases for site in lines_of(weak_memory, case, "sites")]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda run: lines_of(weak_memory, *run), runs))
    needed = {site for (_, site), answer in zip(runs, answers, strict=True) if answer[0].endswith(" FAILED")}
    seen = {site for _, site in runs}
    assert {text_of(site) for site in seen - needed} == set(ORDERS_NOT_NEEDED)
    # The headers have no other ordered accesses.
    names = {site.partition(":")[0] for site in seen if site.partition(":")[0].endswith(".hpp")}
    accesses = set()
    for name in names:
        (path,) = HEADERS.rglob(name)
        for line in path.read_text().splitlines():
            code = line.partition("//")[0].strip()
            if re.search(r"_\.(load|store|exchange|fetch_\w+|compare_exchange_\w+)\(", code) and "relaxed" not in code:
                accesses.add(code)
    assert accesses - {text_of(site) for site in seen} == set(NOT_RUN)


@needs_relacy
def test_the_fences_are_needed_and_suffice(weak_memory: Path) -> None:
    assert lines_of(weak_memory, "reuse", "all:0") == ["reuse ok"]
    assert lines_of(weak_memory, "reuse", "all:1") == ["reuse FAILED"]


def test_the_loops_of_shared_copies_have_the_orders_of_the_case() -> None:
    loops = (HEADERS / "shared_copy.hpp").read_text()
    assert re.findall(r"(load|store)\([^()]*std::memory_order_(\w+)\)", loops) == [
        ("load", "acquire"),
        ("store", "release"),
    ]
