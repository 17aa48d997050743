"""A file is read as it was written, or refused with the place of the damage: never anything else."""

from __future__ import annotations

import json
import os
import random
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ringlet import Variable
from ringlet.errors import CheckpointCorruptError, InvalidArgumentError, NotFoundError
from ringlet.train import Checkpoint
from ringlet.train.checkpoint_format import checksum_of
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.trackable_types import Kind

# The catalogue of robustness asks for so many at least.
MUTATIONS = int(os.environ.get("RINGLET_MUTATIONS", "1000000" if os.environ.get("RINGLET_CI_NIGHTLY") else "100000"))


@pytest.fixture(scope="module")
def memory_disk():
    """A folder in memory where there is one: 10^5 files are written there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


def small_checkpoint(folder):
    """A file with something of everything, and what is in it."""
    state = {"text": "abc", "long": b"0123456789" * 500, "numbers": [1, 2.5, None, True], "table": {1: (2, 3)}}
    checkpoint = Checkpoint(v=Variable(np.arange(5.0)), h=Variable(np.float16(3)), state=state, array=np.arange(3))
    return Path(checkpoint.save(folder / "small") + ".safetensors").read_bytes()


def everything_in(path):
    """The tree and the tensors of a file, as one object that compares."""
    with open_file(str(path)) as file:
        tensors = {name: file.read(entry) for name, entry in file.entries.items()}
        return file.tree, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in tensors.items()}


def mutated(content, chance):
    """The content with one to three changes of the kinds that disks, copies and editors make."""
    changed = bytearray(content)
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        end = chance.choice((8, header, len(changed), len(changed)))
        place = chance.randrange(min(end, len(changed))) if changed else 0
        kind = chance.randrange(7)
        if kind == 0 and changed:
            changed[place] ^= 1 << chance.randrange(8)
        elif kind == 1 and changed:
            changed[place] = chance.choice((0, 32, 34, 44, 48, 49, 57, 93, 125, 255, chance.randrange(256)))
        elif kind == 2:
            del changed[place:]
        elif kind == 3:
            del changed[place : place + chance.randint(1, 16)]
        elif kind == 4:
            changed[place:place] = chance.randbytes(chance.randint(1, 16))
        elif kind == 5:
            other = chance.randrange(max(1, len(changed)))
            changed[place : place + 8] = changed[other : other + 8]
        elif len(changed) >= 8:
            changed[:8] = chance.choice((0, 1, 2**63, 2**64 - 1, 10**8, len(content), header)).to_bytes(8, "little")
    return bytes(changed)


@pytest.mark.slow
def test_a_file_with_any_change_is_refused_with_its_place_or_read_with_the_right_values(memory_disk):
    content = small_checkpoint(memory_disk)
    path = memory_disk / "changed.safetensors"
    path.write_bytes(content)
    expected, chance, refused, read = everything_in(path), random.Random(20), 0, 0
    descriptor = os.open(path, os.O_WRONLY)
    try:
        for number in range(MUTATIONS):
            changed = mutated(content, chance)
            os.ftruncate(descriptor, len(changed))
            os.pwrite(descriptor, changed, 0)
            try:
                assert everything_in(path) == expected, number
            except CheckpointCorruptError as error:
                refused += error.file == str(path) and 0 <= error.offset <= len(changed)
            else:
                read += 1
    finally:
        os.close(descriptor)
    assert refused + read == MUTATIONS
    assert refused > MUTATIONS * 0.9


def with_header(content, change):
    """The file with another header, whose checksum is right: as somebody would make it who means harm."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)
    texts = header["__metadata__"]
    shapes = {name: (entry["dtype"], entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    texts["checksum"] = checksum_of(texts, shapes)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + content[8 + size :]


WORDS = [kind.value for kind in Kind] + ["v", "plain", "NONE", "0x1", "AA==", None, 3, 2.5, True, {}, []]


def random_node(chance, depth=0):
    if depth > 4 or chance.random() < 0.4:
        return chance.choice(WORDS)
    return [chance.choice(WORDS), *(random_node(chance, depth + 1) for _ in range(chance.randint(0, 3)))]


def test_a_file_that_was_made_up_with_right_checksums_does_no_harm(memory_disk):
    """Only errors that say what is wrong: nothing is run, nothing is allocated that is not in the file."""
    content = small_checkpoint(memory_disk)
    path, chance, refused = memory_disk / "made-up.safetensors", random.Random(21), 0
    there = Checkpoint(v=Variable(np.zeros(5)), h=Variable(np.float16(0)), state={"a": Variable(1.0)}, array=3)

    def change(header):
        texts = header["__metadata__"]
        tree = json.loads(texts["tree"])
        where = tree
        for _ in range(chance.randint(0, 3)):
            inner = [each for each in where if isinstance(each, list)]
            where = chance.choice(inner) if inner else where
        if where:
            where[chance.randrange(len(where))] = random_node(chance)
        texts["tree"] = json.dumps(tree)
        if chance.random() < 0.2:
            texts[chance.choice(["saved", "tensors", "format"])] = chance.choice(
                ["", "{}", "[]", '{"v": ["|O8", 0]}', "1e9"]
            )

    for _ in range(MUTATIONS // 200):
        path.write_bytes(with_header(content, change))
        try:
            there.restore(path).expect_partial()
        except (
            ValueError
        ):  # a CheckpointCorruptError, or an InvalidArgumentError: the tree may be one of another program
            refused += 1
    assert refused > MUTATIONS // 1000


def test_a_tree_that_is_nested_too_deeply_is_refused(memory_disk):
    content = small_checkpoint(memory_disk)
    path = memory_disk / "deep.safetensors"

    def deepen(header):
        header["__metadata__"]["tree"] = '["list", [' * 100_000 + "]]" * 100_000

    path.write_bytes(with_header(content, deepen))
    with pytest.raises(CheckpointCorruptError, match="header is invalid"):
        Checkpoint(a=1).restore(path)


def test_a_header_that_promises_much_allocates_nothing(memory_disk):
    path = memory_disk / "promising.safetensors"
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    tracemalloc.start()
    with pytest.raises(CheckpointCorruptError) as caught, open_file(str(path)):
        pass
    assert caught.value.offset == path.stat().st_size
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_file_of_another_program_is_no_checkpoint(tmp_path):
    safetensors.numpy.save_file({"a": np.ones(2)}, tmp_path / "a.safetensors")
    with (
        pytest.raises(CheckpointCorruptError, match=r"is not a checkpoint of ringlet.*load_file and assign"),
        open_file(str(tmp_path / "a.safetensors")),
    ):
        pass


def test_a_file_of_a_later_version_says_so(tmp_path):
    content = small_checkpoint(tmp_path)
    path = tmp_path / "later.safetensors"
    path.write_bytes(with_header(content, lambda header: header["__metadata__"].update(format="ringlet checkpoint 2")))
    words = r"format is 'ringlet checkpoint 2', and this version.*reads"
    # With a checksum that fits it is no damage; in another version the checksum may be another one, too.
    with pytest.raises(InvalidArgumentError, match=words), open_file(str(path)):
        pass
    path.write_bytes(path.read_bytes().replace(b"ringlet checkpoint 2", b"ringlet checkpoint 3"))
    with (
        pytest.raises(
            CheckpointCorruptError, match="does not match its checksum, or its format is 'ringlet checkpoint 3'"
        ),
        open_file(str(path)),
    ):
        pass


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    for name, what in [("pipe", "a pipe"), ("folder", "a folder")]:
        with pytest.raises(CheckpointCorruptError, match=f"is {what}"):
            Checkpoint(v=Variable(0.0)).read(tmp_path / name)


@pytest.mark.parametrize("size", [0, 3, 8, 200])
def test_a_file_that_ends_too_early_is_refused_where_it_ends(tmp_path, size):
    content = small_checkpoint(tmp_path)
    path = tmp_path / "short.safetensors"
    path.write_bytes(content[:size])
    with (
        pytest.raises(CheckpointCorruptError, match=f"at byte {size} of {size}: the file ends inside the header"),
        open_file(str(path)),
    ):
        pass
    path.write_bytes(content[:-1])
    with pytest.raises(CheckpointCorruptError) as caught, open_file(str(path)):
        pass
    assert caught.value.offset == len(content) - 1


def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(tmp_path):
    small_checkpoint(tmp_path)
    path = tmp_path / "small-1.safetensors"
    with open_file(str(path)) as file:
        os.truncate(path, path.stat().st_size - 100)
        with pytest.raises(CheckpointCorruptError, match="the file ends there"):
            file.verify()


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_anew(tmp_path, monkeypatch):
    content = small_checkpoint(tmp_path)
    path, opened = tmp_path / "small-1.safetensors", []
    safe_open = safetensors.safe_open

    def replace_first(*args, **kwargs):
        if not opened:
            (tmp_path / "new").write_bytes(content)
            os.replace(tmp_path / "new", path)
        opened.append(1)
        return safe_open(*args, **kwargs)

    monkeypatch.setattr(safetensors, "safe_open", replace_first)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with open_file(str(path)) as file:
        file.verify()
    assert len(opened) == 2
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="no checkpoint at"), open_file(str(tmp_path / "no.safetensors")):
        pass
