"""The state file tells what was written, or that it is damaged: never anything else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import CheckpointCorruptError
from ringlet.train.state_file import FolderState, read_state, write_state

STATE = FolderState("ckpt-12", ("ckpt-1\n", 'a"b\\', "\u20ac/ckpt-12"), (1.5, 2e9, 1795332026.9412704), 1795332025.25)


def test_what_is_written_is_read(tmp_path):
    write_state(str(tmp_path), STATE)
    assert read_state(str(tmp_path)) == STATE
    assert read_state(str(tmp_path), "other") is None


def test_it_is_text_as_tensorflow_writes_it():
    text = FolderState("ckpt-2", ("ckpt-1", "ckpt-2"), (1.5, 2.5), 0.5).as_text()
    assert text.splitlines()[:-1] == [
        'model_checkpoint_path: "ckpt-2"',
        'all_model_checkpoint_paths: "ckpt-1"',
        'all_model_checkpoint_paths: "ckpt-2"',
        "all_model_checkpoint_timestamps: 1.5",
        "all_model_checkpoint_timestamps: 2.5",
        "last_preserved_timestamp: 0.5",
    ]
    assert text.splitlines()[-1].startswith("# crc32c: ")


@given(
    paths=st.lists(st.text()), latest=st.text(), preserved=st.none() | st.floats(allow_nan=False, allow_infinity=False)
)
def test_any_paths_come_back(paths, latest, preserved):
    state = FolderState(latest, tuple(paths), tuple(float(i) for i in range(len(paths))), preserved)
    assert FolderState.of_text(state.as_text()) == state


def test_any_change_is_noticed():
    text, chance, noticed = STATE.as_text(), random.Random(5), 0
    for _ in range(3000):
        changed = list(text)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 3)] = chr(chance.randrange(1, 200)) * chance.randint(0, 2)
        try:
            assert FolderState.of_text("".join(changed)) == STATE
        except ValueError:
            noticed += 1
    assert noticed > 2900


def test_a_damaged_file_is_named(tmp_path):
    write_state(str(tmp_path), STATE)
    path = tmp_path / "checkpoint"
    path.write_bytes(path.read_bytes()[:-1].replace(b"ckpt-12", b"ckpt-13"))
    with pytest.raises(
        CheckpointCorruptError, match="damaged, or was edited: its lines do not match its checksum"
    ) as caught:
        read_state(str(tmp_path))
    assert (caught.value.file, caught.value.offset) == (str(path), 0)


@pytest.mark.parametrize(
    "lines", ["what: is this\n", "", "model_checkpoint_path: 3\n", 'all_model_checkpoint_paths: "a"\n']
)
def test_lines_that_make_no_sense_are_refused_even_with_their_checksum(lines):
    from ringlet import _core

    with pytest.raises(ValueError, match=r"line|newest|not text"):
        FolderState.of_text(f"{lines}# crc32c: {_core.crc32c(lines.encode()):08x}\n")
