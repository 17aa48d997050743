"""Folders of saved datasets.

``dataset.json`` names the current run: a folder with one file (see `ringlet.data.state.cache_file`) for each shard. A
run is complete before ``dataset.json`` is replaced; earlier runs are deleted afterwards. Therefore, after the first
save, the folder always holds a complete dataset, old or new, even if the program is killed. A lock on ``.lock``
excludes other writers.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
import weakref
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import State
from ringlet.data.state.cache_file import CacheWriter, unfinished_size
from ringlet.data.state.saved_elements import save_element
from ringlet.data.state.spec_text import spec_of_text, spec_text
from ringlet.data.state.state_codec import pack, unpack
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError

_MANIFEST = "dataset.json"
_RUN = "run-"
_VERSION = 1

# Names of compressions, and their zlib levels.
_LEVELS = {None: 0, "": 0, "NONE": 0, "AUTO": 0, "SNAPPY": 1, "GZIP": 6}


class Manifest(NamedTuple):
    """The folder of the current run, its element spec (None if unknown), and the number of elements in each shard."""

    folder: str
    spec: Nest
    shards: dict[int, int]


def check_compression(compression: Any) -> int:
    """Return the zlib level for a compression name, 0 for none; raise InvalidArgumentError for an unknown name."""
    if not isinstance(compression, (str, type(None))) or compression not in _LEVELS:
        raise InvalidArgumentError(f"compression must be None, 'NONE', 'AUTO', 'SNAPPY' or 'GZIP', got {compression!r}")
    return _LEVELS[compression]


def expanded(state: State) -> State:
    """Return the state of an element, decompressed if necessary."""
    if "zlib" not in state:
        return state
    try:
        data = zlib.decompress(state["zlib"])
    except zlib.error as error:
        raise ValueError(str(error)) from error
    expanded_state: State = unpack(data[: state["header"]], data[state["header"] :])
    return expanded_state


class SavedDatasetWriter:
    """Writer of a dataset's elements to the shards of one run."""

    def __init__(self, folder: Path, lock: int, spec: Nest, level: int, progress: State | None) -> None:
        self._folder = folder
        self._lock = lock
        self.spec = spec
        self._level = level
        self._process = os.getpid()
        self._is_open = True
        self._shards: dict[int, CacheWriter] = {}
        self._run = folder / (progress["run"] if progress else f"{_RUN}{uuid.uuid4().hex[:12]}")
        weakref.finalize(self, os.close, lock)  # closing the file releases the lock
        self._delete_other_runs(_current_run(folder), self._run.name)
        self._run.mkdir(exist_ok=True)
        if progress and spec is None and progress["spec"] is not None:
            self.spec = spec_of_text(progress["spec"])
        for shard, offset, count in progress["shards"] if progress else ():
            self._writer(shard, offset, count)

    @classmethod
    def begin(cls, folder: str, spec: Nest, level: int, progress: State | None = None) -> SavedDatasetWriter | None:
        """Return a writer; None if another writer holds the lock.

        With the `progress` of an unfinished run, the writer continues that run; see `can_continue`.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return cls(path, lock, spec, level, progress)

    @property
    def count(self) -> int:
        """The number of elements written."""
        return sum(writer.count for writer in self._shards.values())

    def progress(self) -> State:
        """Flush all elements to disk; return the run, the specs, and the size and number of elements of each shard."""
        return {
            "run": self._run.name,
            "spec": spec_text(self.spec),
            "shards": [[shard, *writer.synced()] for shard, writer in self._shards.items()],
        }

    def write(self, element: Nest, shard: int) -> None:
        """Append an element to its shard."""
        state = save_element(element)
        if self._level:
            header, memory = pack(state)
            state = {"zlib": zlib.compress(header + memory, self._level), "header": len(header)}
        self._writer(shard).write(state)

    def _writer(self, shard: int, offset: int = 0, count: int = 0) -> CacheWriter:
        writer = self._shards.get(shard)
        if writer is None:
            writer = CacheWriter.begin(shard_name(str(self._run), shard), offset, count)
            if writer is None:
                raise OSError(f"the files of {self._run} are locked by another program. Save to another folder.")
            self._shards[shard] = writer
        return writer

    def finish(self) -> None:
        """Complete the run and make it the current run; a run without elements gets one empty shard."""
        if not self._shards:
            self._writer(0)
        counts = {number: self._shards[number].count for number in sorted(self._shards)}
        for writer in self._shards.values():
            writer.finish()
        _sync(self._run)
        content = {
            "format": "ringlet-dataset",
            "version": _VERSION,
            "run": self._run.name,
            "spec": spec_text(self.spec),
            "shards": list(map(list, counts.items())),
        }
        partial = self._folder / (_MANIFEST + ".partial")
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._folder / _MANIFEST)
        _sync(self._folder)
        self._delete_other_runs(self._run.name)
        self._end()

    def abandon(self, *, keeps_files: bool = False) -> None:
        """Delete an incomplete run, or with `keeps_files` only close its files. No effect after `finish` or a fork."""
        if self._is_open and os.getpid() == self._process:
            for writer in self._shards.values():
                writer.release() if keeps_files else writer.abandon()
            if not keeps_files:
                shutil.rmtree(self._run, ignore_errors=True)
        self._end()

    def _end(self) -> None:
        if self._is_open and os.getpid() == self._process:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._is_open = False

    def _delete_other_runs(self, *kept: str | None) -> None:
        for run in self._folder.glob(f"{_RUN}*"):
            if run.name not in kept:
                shutil.rmtree(run, ignore_errors=True)


def can_continue(folder: str, progress: State) -> bool:
    """Return whether a run still exists, is unfinished, and holds all elements counted in `progress`."""
    run = Path(folder) / progress["run"]
    return run.name != _current_run(Path(folder)) and all(
        unfinished_size(shard_name(str(run), shard)) >= offset for shard, offset, _ in progress["shards"]
    )


def shard_name(run: str, shard: int) -> str:
    """Return the name of the file of a shard, without its suffix."""
    return str(Path(run) / f"{shard:08d}")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _current_run(folder: Path) -> str | None:
    try:
        content = json.loads((folder / _MANIFEST).read_bytes())
        return str(content["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_manifest(folder: str) -> Manifest:
    """Return the manifest of a saved dataset."""
    path = Path(folder) / _MANIFEST
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(
            f"no dataset is saved in {folder}: {path} does not exist. Save a dataset with Dataset.save first."
        ) from error
    try:
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, got a {type(content).__name__}")
        if content["format"] != "ringlet-dataset" or content["version"] != _VERSION:
            raise ValueError(
                f"the format is {content['format']!r}, version {content['version']!r}; this version of ringlet reads "
                f"'ringlet-dataset', version {_VERSION}"
            )
        spec = None if content["spec"] is None else spec_of_text(content["spec"])
        shards = {int(number): int(count) for number, count in content["shards"]}
        if Path(content["run"]).name != content["run"]:
            raise ValueError(f"its entry 'run' must be a folder name, got {content['run']!r}")
        return Manifest(str(Path(folder) / content["run"]), spec, shards)
    except (ValueError, KeyError, TypeError) as error:
        problem = f"it has no entry {error}" if isinstance(error, KeyError) else error
        raise DataLossError(f"cannot read {path}: {problem}. Save the dataset again.", str(path), 0) from error
