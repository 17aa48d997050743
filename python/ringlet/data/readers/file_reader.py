"""FileReader: base class of nodes that read files, and their stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import length_hint
from typing import Any

import numpy as np

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import AUTOTUNE
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.graph.thread_map import ThreadMap
from ringlet.data.readers.file_blocks import FileBlocks
from ringlet.data.readers.file_names import text_name
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError

# Maximum number of files that are searched for an example.
_MOST_EXAMPLE_FILES = 16

# The value of AUTOTUNE. It determines the order of elements, so it must not depend on the machine.
_AUTOMATIC_READS = 4


def parallel_reads(num_parallel_reads: Any) -> int | None:
    """Return the number of files read concurrently; None for sequential reading."""
    if num_parallel_reads is None:
        return None
    if not hasattr(num_parallel_reads, "__index__"):
        raise TypeError(f"num_parallel_reads must be an integer or None, got {num_parallel_reads!r}")
    if num_parallel_reads == AUTOTUNE:
        return _AUTOMATIC_READS
    if num_parallel_reads < 1:
        raise InvalidArgumentError(
            "`cycle_length` must be > 0: num_parallel_reads must be the number of files to read concurrently, or "
            f"AUTOTUNE ({AUTOTUNE}), got {num_parallel_reads}"
        )
    return int(num_parallel_reads)


@dataclass(frozen=True, eq=False)
class FileReader(ElementTransform):
    """Base class of nodes over the elements of files; the elements of the input are the file names.

    With `num_parallel_reads`, this number of files are open at a time and take turns, one element per turn; the next
    file replaces a file that ends. With None, files are read one after another.
    """

    num_parallel_reads: int | None

    @abstractmethod
    def open_file(self, name: str) -> FileBlocks:
        """Return the reader of a file."""

    cardinality = UNKNOWN_CARDINALITY  # unknown, because the files are not read in advance

    @property
    def element_spec(self) -> Nest:
        """A scalar of ``bytes``, unless overridden."""
        return TensorSpec((), object)

    def join(self, pieces: list[Any]) -> Nest:
        """Return one batch of several groups of consecutive elements."""
        elements = list(chain.from_iterable(pieces))
        batch = np.empty(len(elements), object)
        batch[:] = elements
        batch.setflags(write=False)
        return batch

    @cached_property
    def example(self) -> Nest:
        """The first element of the first readable, nonempty file, of at most 16 files; ``b""`` if there is none."""
        for name in self._first_names():
            try:
                blocks = self.open_file(text_name(name))
            except (OSError, ValueError, RuntimeError):
                continue
            with closing(blocks), suppress(OSError, ValueError, RuntimeError):
                for element in blocks.next_block():
                    return element
        return b""

    def _first_names(self) -> list[Any]:
        if self.input.runs_user_code:
            return [self.input.example]
        with closing(self.input.open(IterationContext())) as names:
            return list(islice(names, _MOST_EXAMPLE_FILES))

    has_files = True

    def open_elements(self, context: IterationContext) -> Stream:
        return FileElements(self, context)


class _Turn:
    """One position in the rotation of open files; with `is_ahead`, a thread reads the next block of its file."""

    def __init__(self, is_ahead: bool) -> None:
        self.blocks: FileBlocks | None = None
        self.name = ""
        self.offset = 0  # offset of the current block
        self.size = 0  # number of elements in the current block
        self.elements: Iterator[Any] = iter(())
        self._ahead = ThreadMap(_read_block, 1, name="ringlet-read") if is_ahead else None

    def open(self, reader: FileReader, name: str, offset: int = 0, taken: int = 0) -> None:
        self.name = name
        self.blocks = reader.open_file(name)
        if offset:
            self.blocks.skip_to(offset)
        self.offset, self.size, self.elements = offset, 0, iter(())
        if self._ahead is not None:
            self._ahead.put(self.blocks)
        while taken and self.refill():
            passed = min(taken, self.size)
            for _ in range(passed):
                next(self.elements)
            taken -= passed

    def refill(self) -> bool:
        """Read the next block; return False at the end of the file."""
        blocks = self.blocks
        if blocks is None:
            return False
        if self._ahead is None:
            self.offset, elements = _read_block(blocks)
        else:
            self.offset, elements = self._ahead.take()
            if elements:
                self._ahead.put(blocks)
        self.size = len(elements)
        self.elements = iter(elements)
        return self.size > 0

    def end(self) -> None:
        if self._ahead is not None and len(self._ahead):
            with suppress(Exception):
                self._ahead.take()  # waits for the thread to finish reading
        if self.blocks is not None:
            self.blocks.close()
        self.blocks = None
        self.elements = iter(())

    def close(self) -> None:
        """Close the file and stop the thread."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        self.end()

    def get_state(self) -> State | None:
        """Return the name of the file and the position in it; None if no file is open."""
        if self.blocks is None:
            return None
        return {"name": self.name, "offset": self.offset, "taken": self.size - length_hint(self.elements)}


def _take(elements: Iterator[Any], count: int) -> Any:
    take = getattr(elements, "take", None)
    return take(count) if take is not None else list(islice(elements, count))


def _read_block(blocks: FileBlocks) -> tuple[int, Any]:
    elements = blocks.next_block()
    return blocks.offset, elements


class FileElements(InputStream):
    """Stream of the elements of files; the input yields the file names."""

    def __init__(self, reader: FileReader, context: IterationContext) -> None:
        super().__init__(reader, context)
        count = reader.num_parallel_reads or 1
        self._turns = [_Turn(is_ahead=reader.num_parallel_reads is not None and count > 1) for _ in range(count)]
        self._index = 0
        self._turn = self._turns[0]
        self._has_names = True

    def __next__(self) -> Nest:
        turn = self._turn
        for element in turn.elements:
            if len(self._turns) > 1:
                self._advance()
            return element
        if not self._find():
            raise StopIteration
        return self.__next__()

    def next_batch(self, count: int) -> tuple[Nest, int]:
        """Return a batch of the next `count` elements, or fewer at the end, and its size; (None, 0) after the end."""
        pieces: list[Any] = []
        size = 0
        while size < count and self._find():
            turn = self._turn
            most = count - size if len(self._turns) == 1 else 1
            piece = min(most, length_hint(turn.elements))
            pieces.append(_take(turn.elements, piece))
            size += piece
            if len(self._turns) > 1:
                self._advance()
        return (self._node.join(pieces), size) if size else (None, 0)

    def _find(self) -> bool:
        """Move to the next open file, and read blocks, until a file has an element; return False at the end."""
        while self._has_names or any(turn.blocks is not None for turn in self._turns):
            if self._fill(self._turn):
                return True
        self.close()
        return False

    def _fill(self, turn: _Turn) -> bool:
        """Return whether `turn` has elements, after opening its next file or reading a block if it had none.

        If the turn still has none, advance to the next turn.
        """
        if length_hint(turn.elements):
            return True
        if turn.blocks is None and not (self._has_names and self._open_next(turn)):
            self._advance()
            return False
        has_more = False
        try:
            has_more = turn.refill()
        finally:
            if not has_more:
                turn.end()
                self._advance()
        return has_more

    def _open_next(self, turn: _Turn) -> bool:
        try:
            name = next(self._input)
        except StopIteration:
            self._has_names = False
            return False
        turn.open(self._node, text_name(name))
        return True

    def _advance(self) -> None:
        self._index = (self._index + 1) % len(self._turns)
        self._turn = self._turns[self._index]

    def close(self) -> None:
        super().close()
        self._has_names = False
        for turn in self._turns:
            turn.close()

    def get_state(self) -> State:
        files = [turn.get_state() for turn in self._turns]
        return {**super().get_state(), "files": files, "turn": self._index, "has_names": self._has_names}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._has_names = bool(state["has_names"]) and not self._is_closed
        for turn, file in zip(self._turns, state["files"], strict=True):
            if file is not None:
                turn.open(self._node, file["name"], int(file["offset"]), int(file["taken"]))
        self._index = int(state["turn"])
        self._turn = self._turns[self._index]
