"""The state file ``checkpoint`` of a folder: the newest checkpoint and the checkpoints of a manager.

The format is TensorFlow's text format with a checksum in a comment. A damaged or edited file is ignored in favour of
the checkpoint files themselves.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

from ringlet import _core
from ringlet.errors import CheckpointCorruptError
from ringlet.train.atomic_files import open_to_read, write_durably

STATE_NAME = "checkpoint"

_LINE = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|-?[\d.e+-]+)')
_CHECKSUM = re.compile(r"# crc32c: ([0-9a-f]{8})\n?")
_MOST_BYTES = 64 << 20


@dataclasses.dataclass(frozen=True)
class FolderState:
    """Contents of a state file: the newest checkpoint, and a manager's checkpoints, oldest first.

    Paths are relative to the folder. Times are seconds since the epoch; `timestamps` may be empty; `last_preserved` is
    the time of the last checkpoint that a manager keeps permanently or, without one, of the manager's creation.
    """

    latest: str
    paths: tuple[str, ...] = ()
    timestamps: tuple[float, ...] = ()
    last_preserved: float | None = None

    def as_text(self) -> str:
        """Return the text of the file."""
        lines = [f"model_checkpoint_path: {json.dumps(self.latest)}"]
        lines += [f"all_model_checkpoint_paths: {json.dumps(path)}" for path in self.paths]
        lines += [f"all_model_checkpoint_timestamps: {timestamp!r}" for timestamp in self.timestamps]
        if self.last_preserved is not None:
            lines.append(f"last_preserved_timestamp: {self.last_preserved!r}")
        text = "".join(f"{line}\n" for line in lines)
        return f"{text}# crc32c: {_core.crc32c(text.encode()):08x}\n"

    @classmethod
    def of_text(cls, text: str) -> FolderState:
        """Parse the text of :meth:`as_text`; raise ValueError if it is not valid."""
        body, mark, _ = text.rpartition("# crc32c: ")
        checksum = _CHECKSUM.fullmatch(text[len(body) :])
        if not mark or checksum is None or int(checksum[1], 16) != _core.crc32c(body.encode()):
            raise ValueError("its lines do not match its checksum")
        fields: dict[str, list[str]] = {}
        for line in body.splitlines():
            found = _LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"invalid line {line!r}")
            fields.setdefault(found[1], []).append(found[2])
        paths = tuple([_text(value) for value in fields.get("all_model_checkpoint_paths", ())])
        timestamps = tuple([float(value) for value in fields.get("all_model_checkpoint_timestamps", ())])
        preserved = [float(value) for value in fields.get("last_preserved_timestamp", ())]
        if len(fields.get("model_checkpoint_path", ())) != 1 or (timestamps and len(timestamps) != len(paths)):
            raise ValueError(
                "expected one newest checkpoint, and either a timestamp for each checkpoint or no timestamps"
            )
        return cls(_text(fields["model_checkpoint_path"][0]), paths, timestamps, preserved[-1] if preserved else None)


def _text(value: str) -> str:
    text = json.loads(value)
    if not isinstance(text, str):
        raise ValueError(f"{value} is not text")
    return text


def read_state(folder: str, name: str = STATE_NAME) -> FolderState | None:
    """Read the state file of a folder; None if it does not exist. Raise CheckpointCorruptError if it is damaged."""
    path = os.path.join(folder, name)
    try:
        descriptor = open_to_read(path)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        content = file.read(_MOST_BYTES)
    try:
        return FolderState.of_text(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointCorruptError(f"the file {path} is damaged, or was edited: {error}", path, 0) from None


def write_state(folder: str, state: FolderState) -> None:
    """Write the state file of a folder atomically."""
    write_durably(folder, STATE_NAME, lambda path: Path(path).write_bytes(state.as_text().encode()))
