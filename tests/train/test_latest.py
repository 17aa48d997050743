"""The newest checkpoint of a folder is found whatever happened to what tells it."""

from __future__ import annotations

import os

import pytest

from ringlet.errors import CheckpointCorruptError
from ringlet.train import Checkpoint, CheckpointManager, latest_checkpoint
from ringlet.train.latest import checkpoints_in, file_of, known_state, newest_intact
from ringlet.train.state_file import FolderState, read_state, write_state


@pytest.fixture
def folder(tmp_path):
    checkpoint = Checkpoint(a=1)
    for _ in range(3):
        checkpoint.save(tmp_path / "ckpt")
    return tmp_path


def test_a_folder_without_checkpoints_has_no_newest(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "no") is None
    (tmp_path / "model.safetensors").write_bytes(b"not one of ours")
    assert latest_checkpoint(tmp_path) is None


def test_what_the_state_file_tells_counts(folder):
    write_state(str(folder), FolderState("ckpt-2", ("ckpt-1", "ckpt-2")))
    assert latest_checkpoint(folder) == str(folder / "ckpt-2")
    assert latest_checkpoint(os.fsencode(folder)) == str(folder / "ckpt-2")
    assert known_state(str(folder))[1]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'model_checkpoint_path: "ckpt-1"\n# crc32c: 00000000\n'])
def test_a_damaged_state_file_is_not_believed(folder, content, caplog):
    (folder / "checkpoint").write_bytes(content)
    assert latest_checkpoint(folder) == str(folder / "ckpt-3")
    assert "damaged, or was edited" in caplog.text


def test_a_state_file_that_names_what_is_gone_is_not_believed(folder, caplog):
    (folder / "ckpt-3.safetensors").unlink()
    assert latest_checkpoint(folder) == str(folder / "ckpt-2")
    assert "names ckpt-3, which does not exist" in caplog.text


def test_a_state_file_that_another_program_replaces_meanwhile_is_read_again(tmp_path, monkeypatch, caplog):
    manager = CheckpointManager(Checkpoint(step=1), tmp_path, max_to_keep=1)
    manager.save()
    saves = [manager.save]

    def read_before_a_save(*args):
        state = read_state(*args)
        if saves:
            saves.pop()()  # which removes what the state names
        return state

    monkeypatch.setattr("ringlet.train.latest.read_state", read_before_a_save)
    state, is_told = known_state(str(tmp_path))
    assert (state.latest, is_told) == ("ckpt-2", True)
    assert not caplog.records


def test_another_file_may_tell(folder):
    os.replace(folder / "checkpoint", folder / "other")
    Checkpoint(a=1).save(folder / "second")
    assert latest_checkpoint(folder, "other") == str(folder / "ckpt-3")
    assert latest_checkpoint(folder) == str(folder / "second-1")


def test_a_state_file_is_a_folder_or_unreadable(folder):
    (folder / "checkpoint").unlink()
    (folder / "checkpoint").mkdir()
    assert latest_checkpoint(folder) == str(folder / "ckpt-3")


def test_checkpoints_are_in_the_order_in_which_they_were_saved(folder):
    Checkpoint(a=1).save(folder / "other")
    assert [os.path.basename(found.path) for found in checkpoints_in(str(folder))] == [
        "ckpt-1", "ckpt-2", "ckpt-3", "other-1",
    ]  # fmt: skip
    assert [found.number for found in checkpoints_in(str(folder), "ckpt")] == [1, 2, 3]


def test_the_last_good_one_is_whole_to_its_last_byte(folder):
    whole = Checkpoint(w=b"x" * 10_000)
    path = whole.save(folder / "big")
    with open(file_of(path), "r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"y")
    assert latest_checkpoint(folder) == path, "its header is whole"
    with pytest.raises(CheckpointCorruptError, match=r"newest intact checkpoint in its folder is .*ckpt-3|no intact"):
        whole.restore(path)
    assert newest_intact(str(folder), file_of(path)) == str(folder / "ckpt-3")
    assert newest_intact(str(folder), file_of(path), "big") is None
