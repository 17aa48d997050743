"""Files are there whole or not at all, and nothing of a failed save stays."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ringlet import Variable
from ringlet.errors import CheckpointCorruptError, DeadlineExceededError
from ringlet.train import Checkpoint
from ringlet.train import atomic_files as folders
from ringlet.train.atomic_files import clean, locked, make_folder, open_to_read, remove_files, write_durably


def test_a_file_is_brought_to_the_disk_before_it_takes_its_name_and_the_name_after(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor):
        steps.append(("fsync", "folder" if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)) else "file"))
        fsync(descriptor)

    def noted_replace(source, target):
        steps.append(("replace", os.path.basename(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_durably(str(tmp_path), "a", lambda path: Path(path).write_bytes(b"new"))
    assert steps == [("fsync", "file"), ("replace", "a"), ("fsync", "folder")]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    def fail(path):
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_durably(str(tmp_path), "a", fail)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_an_error_of_the_system_says_what_was_to_be_written_and_keeps_its_class(tmp_path):
    def fail(path):
        raise OSError(errno.ENOSPC, "full", path)

    with pytest.raises(OSError, match=r"No space left on device: .*/a was not written\. \d+ bytes are free") as caught:
        write_durably(str(tmp_path), "a", fail)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(FileNotFoundError, match=r"was not written\. What was saved"):
        write_durably(str(tmp_path / "no"), "a", print)


def test_folders_that_are_in_use_are_not_cleaned(tmp_path):
    seen = []

    def write(path):
        clean(str(tmp_path))
        Path(path).write_bytes(b"new")
        seen.extend(os.listdir(tmp_path))

    write_durably(str(tmp_path), "a", write)
    assert len(seen) == 1
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_program_that_was_killed_left_is_cleaned(tmp_path):
    program = f"""
import os, signal
from ringlet.train.atomic_files import write_durably
def write(path):
    open(path, "w").write("half")
    os.kill(os.getpid(), signal.SIGKILL)
write_durably({str(tmp_path)!r}, "a", write)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == -9
    (left,) = os.listdir(tmp_path)
    assert os.listdir(tmp_path / left) == ["file"]
    clean(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_only_folders_of_ours_are_cleaned(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").touch()
    (tmp_path / ".ringlet-0123456789abcdef.saving").symlink_to(target)
    (tmp_path / ".ringlet-0123456789abcde0.saving").write_text("a file")
    (tmp_path / ".ringlet-123.saving").mkdir()
    clean(str(tmp_path))
    assert (target / "precious").exists()
    assert len(os.listdir(tmp_path)) == 4
    clean(str(tmp_path / "no"))


def test_a_folder_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    made = []
    mkdir = os.mkdir

    def mkdir_and_clean(path, mode=0o777):
        mkdir(path, mode)
        made.append(path)
        if len(made) < 3:
            clean(str(tmp_path))

    monkeypatch.setattr(os, "mkdir", mkdir_and_clean)
    write_durably(str(tmp_path), "a", lambda path: Path(path).write_bytes(b"new"))
    assert len(made) == 3
    assert os.listdir(tmp_path) == ["a"]


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path):
    def write(number):
        for _ in range(20):
            write_durably(str(tmp_path), "a", lambda path: Path(path).write_bytes(bytes([number]) * 5000))
            content = (tmp_path / "a").read_bytes()
            assert len(content) == 5000
            assert len(set(content)) == 1
            clean(str(tmp_path))

    failed = []

    def guarded(number):
        try:
            write(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_that_another_has_locked_is_waited_for_and_then_named(tmp_path):
    def lock():
        with locked(str(tmp_path), timeout_seconds=0.05):
            pass

    with ThreadPoolExecutor(1) as another:
        with (
            locked(str(tmp_path)),
            pytest.raises(DeadlineExceededError, match=r"has had the lock of the folder .* for 0\.05 s"),
        ):
            another.submit(lock).result(30)
        another.submit(lock).result(30)


def test_a_signal_handler_may_save_while_its_thread_does(tmp_path):
    checkpoint = Checkpoint(v=Variable(1.0))
    before = signal.signal(signal.SIGUSR1, lambda *_: checkpoint.save(tmp_path / "ckpt"))
    try:
        with locked(str(tmp_path)):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-1.safetensors"]


def test_where_there_are_no_locks_nothing_is_taken_for_a_leftover(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "fcntl", None)
    (tmp_path / ".ringlet-0123456789abcdef.saving").mkdir()
    clean(str(tmp_path))
    with locked(str(tmp_path)):
        write_durably(str(tmp_path), "a", lambda path: Path(path).write_bytes(b"new"))
    assert sorted(os.listdir(tmp_path)) == [".ringlet-0123456789abcdef.saving", "a"]


def test_folders_are_made_with_those_above_them(tmp_path):
    make_folder(str(tmp_path / "a" / "b"))
    make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_files_that_are_gone_are_removed_already(tmp_path):
    (tmp_path / "a").touch()
    remove_files([str(tmp_path / "a"), str(tmp_path / "b")])
    assert os.listdir(tmp_path) == []


def test_a_process_that_was_forked_meanwhile_does_not_keep_a_folder_locked(tmp_path, monkeypatch):
    opened, open_of_system = [], os.open

    def noted_open(*args):
        opened.append(open_of_system(*args))
        return opened[-1]

    monkeypatch.setattr(os, "open", noted_open)
    with locked(str(tmp_path)):
        forked = os.dup(opened[-1])  # what a fork leaves in the other process
    try:
        with locked(str(tmp_path), timeout_seconds=0.05):
            pass
    finally:
        os.close(forked)


def test_what_another_user_left_is_let_alone(tmp_path, monkeypatch):
    (tmp_path / ".ringlet-0123456789abcdef.saving").mkdir()
    opened = os.open

    def refuse(path, *args, **kwargs):
        if str(path).endswith(".saving"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)  # root may open everything
    clean(str(tmp_path))
    assert os.listdir(tmp_path) == [".ringlet-0123456789abcdef.saving"]


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP])
def test_where_the_disk_knows_no_locks_files_are_written_all_the_same(tmp_path, monkeypatch, error):
    def refuse(*_):
        raise OSError(error, "no locks")

    monkeypatch.setattr(folders.fcntl, "flock", refuse)
    (tmp_path / ".ringlet-0123456789abcdef.saving").mkdir()
    clean(str(tmp_path))
    with locked(str(tmp_path)):
        write_durably(str(tmp_path), "a", lambda path: Path(path).write_bytes(b"new"))
    assert sorted(os.listdir(tmp_path)) == [".ringlet-0123456789abcdef.saving", "a"]


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in [(tmp_path / "pipe", "a pipe or a device"), (tmp_path, "a folder"), ("/dev/zero", "a pipe or a")]:
        with pytest.raises(CheckpointCorruptError, match=f"is {what}"):
            open_to_read(str(path))


SMALL_DISK = """
import os, sys, numpy as np, errno
from ringlet import Variable
from ringlet.train import Checkpoint, CheckpointManager
folder = sys.argv[1]
checkpoint = Checkpoint(v=Variable(np.ones(1 << 17)))
manager = CheckpointManager(checkpoint, folder, 5)
paths = []
try:
    for _ in range(9):
        paths.append(manager.save())
except OSError as error:
    assert error.errno == errno.ENOSPC and "bytes are free" in str(error), error
else:
    raise SystemExit("the disk was never full")
assert len(paths) == 3, paths
assert sorted(os.listdir(folder)) == ["checkpoint", *(f"ckpt-{i}.safetensors" for i in (1, 2, 3))], os.listdir(folder)
checkpoint.v.assign(np.zeros(1 << 17))
assert manager.restore_or_initialize() == paths[-1] and checkpoint.v.numpy().all()
print("held")
"""


def test_a_full_disk_is_named_and_the_last_good_checkpoint_is_untouched(tmp_path):
    disk, script = tmp_path / "disk", tmp_path / "script.py"
    disk.mkdir()
    script.write_text(SMALL_DISK)
    alone = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0 or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    command = f"mount -t tmpfs -o size=3700k tmpfs {disk} && exec {sys.executable} {script} {disk}"
    done = subprocess.run([*alone, "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("held\n", 0), done.stderr
