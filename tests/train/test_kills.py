"""A program that is killed at any moment of a save leaves the last good checkpoint.

A small library stands before the C library and counts every call by which a program changes files. It kills the process
at the k-th one, for every k: before the call, or in the middle of what it writes. What a library asks of the system
without the C library lies between two such calls.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# Kills of random moments, besides those at every call.
RANDOM_KILLS = 200 if os.environ.get("RINGLET_CI_NIGHTLY") else 10

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long armed = 0, count = 0;
static int in_the_middle = 0;
static char trace[1 << 16];

void shim_arm(long k, int middle) { armed = k; in_the_middle = middle; count = 0; trace[0] = 0; }
long shim_count(void) { return count; }
const char* shim_trace(void) { return trace; }

static int due(const char* name) {
  if (!armed) return 0;
  if (strlen(trace) + strlen(name) + 2 < sizeof trace) { strcat(trace, name); strcat(trace, " "); }
  return ++count == armed;
}
static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define OPEN(name, flags_of) \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); \
  } \
  if ((flags & (O_CREAT | O_TRUNC)) && due(#name)) die()

int open(const char* path, int flags, ...) { REAL(open); OPEN(open, flags); return real(path, flags, mode); }
int open64(const char* path, int flags, ...) { REAL(open64); OPEN(open, flags); return real(path, flags, mode); }
int openat(int at, const char* path, int flags, ...) {
  REAL(openat); OPEN(open, flags); return real(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  REAL(openat64); OPEN(open, flags); return real(at, path, flags, mode);
}
ssize_t write(int file, const void* bytes, size_t size) {
  REAL(write);
  if (due("write")) { if (in_the_middle) (void)!real(file, bytes, size / 2); die(); }
  return real(file, bytes, size);
}
int fsync(int file) { REAL(fsync); if (due("fsync")) die(); return real(file); }
int fchmod(int file, mode_t mode) { REAL(fchmod); if (due("fchmod")) die(); return real(file, mode); }
int ftruncate(int file, off_t size) { REAL(ftruncate); if (due("ftruncate")) die(); return real(file, size); }
int ftruncate64(int file, off64_t size) { REAL(ftruncate64); if (due("ftruncate")) die(); return real(file, size); }
int rename(const char* from, const char* to) { REAL(rename); if (due("rename")) die(); return real(from, to); }
int renameat(int a, const char* from, int b, const char* to) {
  REAL(renameat); if (due("rename")) die(); return real(a, from, b, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  REAL(renameat2); if (due("rename")) die(); return real(a, from, b, to, flags);
}
int unlink(const char* path) { REAL(unlink); if (due("unlink")) die(); return real(path); }
int unlinkat(int at, const char* path, int flags) {
  REAL(unlinkat); if (due("unlink")) die(); return real(at, path, flags);
}
int mkdir(const char* path, mode_t mode) { REAL(mkdir); if (due("mkdir")) die(); return real(path, mode); }
int rmdir(const char* path) { REAL(rmdir); if (due("rmdir")) die(); return real(path); }
int close(int file) { REAL(close); if (due("close")) die(); return real(file); }
"""

# Forks a child for every kill: what it imported serves all of them.
DRIVER = r"""
import ctypes, os, random, shutil, signal, sys, time
import numpy as np
from ringlet import Variable
from ringlet.train import Checkpoint, CheckpointManager, latest_checkpoint

base, random_kills = sys.argv[1], int(sys.argv[2])
shim = ctypes.CDLL(None)
shim.shim_trace.restype = ctypes.c_char_p


def saved(number):
    return Checkpoint(v=Variable(np.full(5000, float(number))), state={"number": number, "text": b"x" * 5000})


def manager_of(folder):
    checkpoint = saved(0)
    return CheckpointManager(checkpoint, folder, max_to_keep=2)


def put(manager, number):
    manager.checkpoint.v.assign(np.full(5000, float(number)))
    manager.checkpoint.state = {"number": number, "text": b"x" * 5000}
    return manager.save()


def child(action):
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return pid


def check(folder, k):
    "What is there is the third or the fourth checkpoint, whole, and saving goes on."
    manager = manager_of(folder)
    assert manager.latest_checkpoint == latest_checkpoint(folder), k
    assert manager.restore_or_initialize() == manager.latest_checkpoint, k
    number = manager.checkpoint.state["number"]
    assert number in (3, 4), (k, number)
    assert set(manager.checkpoint.v.numpy()) == {float(number)}, k
    assert len(manager.checkpoint.state["text"]) == 5000
    put(manager, 9)
    left = sorted(os.listdir(folder))
    assert not [name for name in left if name.startswith(".")], (k, left)
    again = manager_of(folder)
    again.restore_or_initialize()
    assert again.checkpoint.state["number"] == 9, k


def prepared(name):
    folder = os.path.join(base, name)
    manager = manager_of(folder)
    for number in (1, 2, 3):
        put(manager, number)
    return folder, manager


def killed(name, k, middle):
    folder, manager = prepared(name)

    def action():
        shim.shim_arm(ctypes.c_long(k), middle)
        put(manager, 4)

    _, status = os.waitpid(child(action), 0)
    check(folder, (k, middle))
    shutil.rmtree(folder)
    return status


folder, manager = prepared("trace")
shim.shim_arm(ctypes.c_long(1 << 30), 0)
put(manager, 4)
total, trace = shim.shim_count(), shim.shim_trace().decode().split()
shim.shim_arm(ctypes.c_long(0), 0)

for k in range(1, total + 1):
    assert killed(f"k{k}", k, 0) == signal.SIGKILL, k
    if trace[k - 1] == "write":
        assert killed(f"m{k}", k, 1) == signal.SIGKILL, k
assert killed("none", total + 100, 0) == 0

chance = random.Random(7)
for number in range(random_kills):
    folder, manager = prepared(f"r{number}")
    pid = child(lambda: put(manager, 4))
    time.sleep(chance.random() * 0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    check(folder, f"random {number}")
print(total, *trace)
"""


@pytest.mark.timeout(120 + 5 * RANDOM_KILLS)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a library is put before that of the system")
def test_a_program_that_is_killed_at_any_call_of_a_save_leaves_the_last_good_checkpoint(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "shim.c").write_text(SHIM)
    (tmp_path / "driver.py").write_text(DRIVER)
    shim = tmp_path / "shim.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True, timeout=60
    )
    environ = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path), str(RANDOM_KILLS)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110 + 5 * RANDOM_KILLS, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
    total, *trace = done.stdout.split()
    assert int(total) == len(trace) > 30
    # The checkpoint, and then what tells of it: before the old one goes, and once more after.
    goes = len(trace) - 1 - trace[::-1].index("unlink")
    assert [trace[:goes].count(call) for call in ("fsync", "rename")] == [4, 2], trace
    assert [trace[goes:].count(call) for call in ("fsync", "rename")] == [2, 1], trace
