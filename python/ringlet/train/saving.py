"""One save: selects the workers that write, collects the state of the other workers, and shares errors."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ringlet.train.atomic_files import clean, make_folder, write_durably
from ringlet.train.checkpoint_options import CheckpointOptions, call_back, wait_for_chief, writes
from ringlet.train.checkpoint_writer import Tensor, write_file
from ringlet.train.encoding import encode
from ringlet.train.latest import SUFFIX
from ringlet.train.per_worker_state import pack, parts_of, unpack, with_parts
from ringlet.train.save_consensus import exchange_messages, folder_of, saving_workers

if TYPE_CHECKING:
    from ringlet.strategy.multi_worker.worker_group import WorkerGroup


class Saving:
    """One save, as a context manager: the chief writes inside it, and the other workers wait at its exit.

    The chief writes for all workers with the same folder. As in TensorFlow, a worker with a different folder writes
    its own file.
    """

    def __init__(self, value: Any, path: str, options: CheckpointOptions | None) -> None:
        self._value, self._path, self._options = value, path, options
        self._workers = saving_workers(options)
        self._name = os.path.basename(path)
        self._others: dict[int, list[Any]] = {}
        self._tree: Any = None
        self._tensors: list[Tensor] = []
        self.writes = False

    def __enter__(self) -> Saving:
        if self._workers is None:
            self.writes = writes(self._options)
        else:
            self._agree(self._workers)
        return self

    def _agree(self, workers: WorkerGroup) -> None:
        me, what = workers.worker_index, f"save {self._name}"
        parts, error = {}, None
        try:
            parts = parts_of(self._value, me)
        except Exception as caught:
            error = caught
        mine = {"folder": folder_of(self._path), "parts": {name: part.digest for name, part in parts.items()}}
        answers = [message for message, _ in exchange_messages(workers, what, mine, error)]
        chief = 0  # the first worker is the chief if no task is named chief
        self.writes = me == chief or answers[me]["folder"] != answers[chief]["folder"]
        digests = [message["parts"] for message in answers]
        unlike = {name for each in digests for name in each if len({other.get(name) for other in digests}) > 1}
        if unlike:
            data = pack({name: part for name, part in parts.items() if name in unlike})
            pieces = exchange_messages(workers, what, {}, data=data)
            if self.writes:
                self._take({number: piece for number, (_, piece) in enumerate(pieces) if number != me})

    def _take(self, pieces: dict[int, bytes]) -> None:
        for number, piece in pieces.items():
            self._others[number], tensors = unpack(piece)
            self._tensors += tensors

    def copy(self) -> None:
        """Encode the objects and copy the arrays that may change, so that a thread can call :meth:`write`."""
        self._tree, tensors = encode(self._value)
        self._tensors = [tensor.steady() for tensor in (*tensors, *self._tensors)]

    def write(self) -> None:
        """Write the file durably, if this process writes."""
        if not self.writes:
            return
        if self._tree is None:
            self._tree, tensors = encode(self._value)
            self._tensors += tensors
        tree = self._tree
        if self._workers is not None:
            tree = with_parts(tree, self._workers.worker_index, self._workers.num_workers, self._others)
        folder, name = os.path.split(self._path)
        folder = folder or os.curdir
        make_folder(folder)
        clean(folder)
        saved_ns = time.time_ns()
        write_durably(folder, name + SUFFIX, lambda file: write_file(file, tree, self._tensors, saved_ns))
        call_back(self._options, self._path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workers is None:
            if error is None:
                wait_for_chief(self._options, self._path)
        elif error is None or isinstance(error, Exception):
            exchange_messages(self._workers, f"write {self._name}", {}, error)
        if error is None and not self.writes:
            call_back(self._options, self._path)
