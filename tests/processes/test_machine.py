"""Machines that have too little of something, or refuse it: it works all the same, or says what is missing."""

from __future__ import annotations

import platform
import subprocess

import pytest

# Shared and private arrays of 64 MiB, and small ones.
REDUCE = """
import numpy as np, ringlet
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
seconds = float((*sys.argv, 50)[4])
def run():
    with init_process_group(rank, num_ranks, name=name, timeout_seconds=seconds) as member:
        for count in (1, 1000, 2**24):
            for make in (np.empty, ringlet.empty_shared):
                x = make(count, np.float32)
                x[...] = rank + 1
                got = member.all_reduce(x)
                expected = num_ranks * (num_ranks + 1) / 2
                assert got.min() == got.max() == expected, (count, make)
    tell("right")
def attempt():
    try:
        run()
    except BaseException as error:
        tell([type(error).__name__, [kind.__name__ for kind in type(error).__mro__], str(error)])
"""


def in_own_mounts(command):
    """Run what follows after a change of what is mounted, which nobody else sees."""
    under = ["unshare", "-m", "--propagation", "private", "sh", "-c", f'{command} && exec "$@"', "sh"]
    if subprocess.run([*under, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not change what is mounted")
    return under


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs -o size=1m tmpfs /dev/shm",
        "mount -t tmpfs -o ro tmpfs /dev/shm",
        "mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9",
    ],
    ids=["small", "read-only", "missing"],
)
def test_shared_memory_does_not_depend_on_dev_shm(processes, name, command):
    under = in_own_mounts(command)
    ranks = [processes.start(REDUCE + "attempt()", rank, 2, name, under=under) for rank in range(2)]
    assert [process.told() for process in ranks] == ["right", "right"]
    assert [process.wait() for process in ranks] == [0, 0]


LIMITED = "\nimport resource\nresource.setrlimit(resource.%s, (%s, %s))\nattempt()\n"


def test_who_cannot_make_the_group_tells_the_others_why(processes, name):
    scripts = [REDUCE + LIMITED % ("RLIMIT_FSIZE", 4096, 4096), REDUCE + "attempt()"]
    unable, other = [processes.start(script, rank, 2, name) for rank, script in enumerate(scripts)]
    assert unable.told()[0] == "SharedMemoryFullError"
    kind, _, text = other.told()
    assert kind == "WorkerLostError"
    assert f"rank 0 (pid {unable.pid} on " in text
    assert ") failed (cannot create a file of " in text


def test_two_ranks_need_no_more_than_32_open_files(processes, name):
    script = REDUCE + LIMITED % ("RLIMIT_NOFILE", 32, 32)
    ranks = [processes.start(script, rank, 2, name) for rank in range(2)]
    assert [process.told() for process in ranks] == ["right", "right"]


@pytest.mark.slow
def test_a_limit_of_open_files_that_is_too_low_raises_and_ends_no_process(processes, name):
    kinds = ("OSError", "SharedMemoryFullError", "WorkerLostError", "CollectiveAborted", "DeadlineExceededError")
    for limit in range(5, 20, 2):
        script = REDUCE + LIMITED % ("RLIMIT_NOFILE", limit, limit)
        ranks = [processes.start(script, rank, 2, f"{name} {limit}", 2) for rank in range(2)]
        told = [process.told() for process in ranks]
        for answer in told:
            assert answer == "right" or answer[0] in kinds, answer
        assert [process.wait() for process in ranks] == [0, 0]


AS_LIMIT = """
import resource
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
attempt()
"""


def test_a_limit_of_memory_that_is_too_low_raises_and_ends_no_process(processes, name):
    ranks = [processes.start(REDUCE + (AS_LIMIT if rank == 0 else "attempt()"), rank, 2, name) for rank in range(2)]
    told = ranks[0].told()
    assert {"MemoryError", "SharedMemoryFullError", "CollectiveAborted"} & set(told[1]), told
    assert "memory" in told[2].lower(), told
    other = ranks[1].told()
    assert other[0] in ("CollectiveAborted", "WorkerLostError", "CollectiveMismatchError"), other
    assert [process.wait() for process in ranks] == [0, 0]


SHARED_LIMIT = """
import resource
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
try:
    ringlet.empty_shared(2**28, np.uint8)
except OSError as error:
    tell([type(error).__name__, str(error), error.need_bytes, error.path])
x = ringlet.empty_shared(1000, np.uint8)
x[...] = 1
tell(int(x.sum()))
"""


def test_a_shared_array_that_does_not_fit_says_how_much_was_wanted(processes):
    process = processes.start(REDUCE + SHARED_LIMIT, 0, 1, "")
    kind, text, need, path = process.told()
    assert kind == "SharedMemoryFullError"
    assert need >= 2**28
    assert path
    assert "MiB" in text or str(need) in text
    assert process.told() == 1000


# A filter that lets memfd_create fail with EPERM, and everything else pass (seccomp(2)).
SECCOMP = """
import ctypes, struct, platform
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
def instruction(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
program = b"".join([
    instruction(0x20, 0, 0, 0),                  # load the number of the system call
    instruction(0x15, 0, 1, number),             # memfd_create?
    instruction(0x06, 0, 0, 0x00050000 | 1),     # fail with EPERM
    instruction(0x06, 0, 0, 0x7FFF0000),         # allow
])
buffer = ctypes.create_string_buffer(program)
filter = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0           # no new privileges
assert libc.prctl(22, 2, ctypes.c_char_p(filter), 0, 0) == 0, ctypes.get_errno()
attempt()
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the number of a system call is needed")
def test_a_system_that_refuses_memfds_is_named_on_every_rank(processes, name):
    ranks = [processes.start(REDUCE + SECCOMP, rank, 2, name) for rank in range(2)]
    told = [process.told() for process in ranks]
    texts = [answer[2] for answer in told if answer != "right" and "SharedMemoryFullError" in answer[1]]
    assert texts, told
    assert all("memfd" in text for text in texts)
    assert all(answer != "right" for answer in told)
    assert [process.wait() for process in ranks] == [0, 0]


SEALS = """
import fcntl, glob
member = init_process_group(rank, num_ranks, name=name, timeout_seconds=50)
x = ringlet.empty_shared(100_000, np.float32)
x[...] = 1
member.all_reduce(x)
found = 0
for path in glob.glob("/proc/self/fd/*") + glob.glob("/proc/self/map_files/*"):
    try:
        if not os.readlink(path).startswith("/memfd:"):
            continue
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        continue
    found += 1
    seals = fcntl.fcntl(descriptor, 1034)        # F_GET_SEALS
    assert seals & 7 == 7, seals                 # SEAL, SHRINK, GROW
    whole = os.fstat(descriptor).st_size
    for size in (0, whole - 4096, whole + 4096):
        try:
            os.ftruncate(descriptor, size)
            raise AssertionError("the size could be changed")
        except PermissionError:
            pass
    os.close(descriptor)
tell(found)
assert member.all_reduce(x)[0] == num_ranks
member.close()
tell("right")
"""


def test_nobody_can_change_the_size_of_shared_memory(processes, name):
    ranks = [processes.start(REDUCE + SEALS, rank, 2, name) for rank in range(2)]
    if sum(process.told() for process in ranks) == 0:
        pytest.skip("only root may look at the memory that a process maps")
    assert [process.told() for process in ranks] == ["right", "right"]


NO_NAME = """
import glob
before = set(os.listdir("/dev/shm")), set(os.listdir("/tmp"))
with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
    x = ringlet.empty_shared(100_000, np.float32)
    member.all_reduce(x)
    member.barrier()
    during = set(os.listdir("/dev/shm")), set(os.listdir("/tmp"))
    member.barrier()
tell([sorted(now - then) for now, then in zip(during, before)])
"""


def test_shared_memory_has_no_name_in_any_file_system(processes, name):
    ranks = [processes.start(REDUCE + NO_NAME, rank, 2, name) for rank in range(2)]
    for process in ranks:
        in_shm, in_tmp = process.told()
        assert not [file for file in in_shm + in_tmp if "ringlet" in file or "memfd" in file]
