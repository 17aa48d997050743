"""FileCachedElements: the stream of a cache in a file."""

from __future__ import annotations

import weakref
from pathlib import Path

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, State, Stream
from ringlet.data.state.cache_file import SUFFIX, CacheReader, CacheWriter
from ringlet.data.state.saved_elements import load_element, save_element
from ringlet.errors import NotFoundError


class FileCachedElements(Stream):
    """Stream of elements: read from a complete file, or computed; the first of concurrent streams writes the file."""

    def __init__(self, node: Node, context: IterationContext, filename: str) -> None:
        self._node = node
        self._context = context
        self._filename = filename
        self._is_started = False
        self._is_closed = False
        self._input: Stream | None = None
        self._reader: CacheReader | None = None
        self._writer: CacheWriter | None = None

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if not self._is_started:
            self._start()
        if self._reader is not None:
            return self._read(self._reader)
        return self._make()

    def _start(self) -> None:
        if Path(self._filename + SUFFIX).exists():
            self._reader = self._open_file()
        else:
            try:
                self._writer = CacheWriter.begin(self._filename)
            except FileNotFoundError as error:
                raise NotFoundError(
                    f"cannot create the cache {self._filename}: its folder does not exist. Create the folder first."
                ) from error
            if self._writer is not None:
                weakref.finalize(self, self._writer.abandon)
            self._input = self._node.open(self._context)
        self._is_started = True

    def _open_file(self, offset: int | None = None, count: int = 0) -> CacheReader:
        try:
            return CacheReader(self._filename) if offset is None else CacheReader(self._filename, offset, count)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"the cache {self._filename}, which the saved iterator was reading, does not exist. Start a new "
                "iterator."
            ) from error

    def _read(self, reader: CacheReader) -> Nest:
        try:
            return load_element(next(reader), self._node)
        except StopIteration:
            self.close()
            raise

    def _make(self) -> Nest:
        if self._input is None:
            raise StopIteration
        try:
            element = next(self._input)
            if self._writer is not None:
                self._writer.write(save_element(element))
        except StopIteration:
            if self._writer is not None:
                self._writer.finish()
            self.close()
            raise
        except BaseException:
            self._abandon()
            raise
        return element

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def close(self) -> None:
        """Close the input and the file; delete an incomplete file."""
        self._is_closed = True
        self._abandon()
        if self._reader is not None:
            self._reader.close()
        if self._input is not None:
            self._input.close()

    def get_state(self) -> State:
        reader = self._reader
        return {
            "is_closed": self._is_closed,
            "is_started": self._is_started,
            "file": None if reader is None else [reader.offset, reader.count],
            "input": None if self._input is None or self._is_closed else self._input.get_state(),
        }

    def set_state(self, state: State) -> None:
        """Restore a snapshot; if the stream had started, it writes no file: it does not recompute earlier elements."""
        self._is_started = state["is_started"]
        if state["is_closed"]:
            self.close()
        elif state["file"] is not None:
            self._reader = self._open_file(*state["file"])
        elif state["input"] is not None:
            self._input = self._node.open(self._context)
            self._input.set_state(state["input"])
