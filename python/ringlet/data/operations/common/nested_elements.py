"""Interleaving of inner datasets that a user function returns for elements.

A cycle has *slots*; each holds one inner dataset. A *visit* to a slot yields up to `block_length` of its elements; then
the next slot is visited. A visit to an exhausted inner dataset clears the slot; a visit to an empty slot first opens
the inner dataset of the next outer element. With one slot, inner datasets are read one after another.

With threads, the slots of the next visits are filled in advance, each by one call at a time. If the stream is
ordered, the order of elements does not depend on the threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import RestoredError
from ringlet.data.graph.node import InputStream, IterationContext, Node, State
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.data.graph.thread_map import ThreadMap
from ringlet.data.operations.common.user_function import UserFunction, node_of, spread
from ringlet.data.state.saved_elements import load_element, load_elements, save_element, save_elements

if TYPE_CHECKING:
    from ringlet.data.operations.flat_map import FlatMap

# Held while a dataset makes its random choices, so that all threads that open the dataset use the same choices.
_CHOOSING = threading.Lock()


class DatasetFunction(UserFunction):
    """A user function that returns a dataset for an element."""

    def __init__(self, function: Callable[..., Any], name: str = "map_func") -> None:
        super().__init__(function, name)

    def node(self, answer: Any, number: int = 0) -> Node:
        """Return the node of the dataset `answer`; raise TypeError if it is not a dataset."""
        node = node_of(answer)
        if node is None:
            raise TypeError(
                f"{self._name} must return a Dataset, but {self.where(f'returned {answer!r}', number)}. "
                "Return Dataset.from_tensors(x) for a dataset of one element, or use map for a function that returns "
                "arrays."
            )
        return node

    def open(self, number: int, element: Nest, context: IterationContext) -> PipelineHandle:
        """Call the function for an element, and open the dataset that it returns."""
        node = self.node(self(number, *spread(element)), number)
        # Each element has its own round: a shuffle created outside of the function has a different order for each
        # element.
        context = context.in_round(number)
        with _CHOOSING:
            context.begin(node)
        return PipelineHandle(node, context)


class Slot:
    """An inner dataset, opened when it is first read, and the elements read ahead from it."""

    __slots__ = ("_context", "_function", "_is_over", "_opened", "element", "failure", "is_at_work", "number", "ready")

    def __init__(self, number: int, element: Nest, function: DatasetFunction, context: IterationContext) -> None:
        self.number = number  # number of the outer element
        self.element = element
        self._function = function
        self._context = context
        self._opened: PipelineHandle | None = None
        self._is_over = False
        self.is_at_work = False  # whether a thread is filling `ready`
        self.ready: deque[Nest] = deque()
        self.failure: BaseException | None = None  # raised after the ready elements

    def fail(self, error: Exception) -> None:
        """Store an exception in place of an inner dataset."""
        self.failure = error
        self._is_over = True

    def is_filled(self, count: int) -> bool:
        """Return whether the next `count` elements, all remaining elements, or an exception are ready."""
        return self._is_over or self.failure is not None or len(self.ready) >= count

    def fill(self, count: int) -> None:
        """Read until `count` elements are ready; stop at the end, or at an exception, which is stored in `failure`."""
        if self.is_filled(count):
            return
        try:
            if self._opened is None:
                self._is_over = True  # nothing can be read until the inner dataset is opened
                self._opened = self._function.open(self.number, self.element, self._context)
                self._is_over = False
            while len(self.ready) < count:
                self.ready.append(next(self._opened.stream))
        except StopIteration:
            self._is_over = True
        except BaseException as error:
            self.failure = error

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def get_state(self) -> State:
        """Return the outer element, the inner state, and the ready elements."""
        is_open = self._opened is not None and not self._is_over
        return {
            "number": self.number,
            # If the state is None, the inner dataset is exhausted.
            "element": None if self._is_over else save_element(self.element),
            "inner": self._opened.get_state() if is_open and self._opened is not None else None,
            "is_over": self._is_over,
            "ready": save_elements(list(self.ready)),
            "failure": None if self.failure is None else RestoredError.text(self.failure),
        }

    def set_state(self, state: State, node: Node) -> None:
        """Restore a snapshot; reopen the inner dataset if it was open."""
        self._is_over = state["is_over"]
        if state["inner"] is not None:
            self._opened = self._function.open(self.number, self.element, self._context)
            self._opened.set_state(state["inner"])
        self.ready.extend(load_elements(state["ready"], node))
        self.failure = None if state["failure"] is None else RestoredError(state["failure"])


class NestedElements(InputStream):
    """Stream of the elements of several inner datasets, in turn.

    `num_calls` of the `cycle_length` slots are filled concurrently, in threads; if `num_calls` is one, elements are
    read on request. A visit takes up to `block_length` elements. Unless `is_ordered`, a visit to a slot that a thread
    is still filling moves to the slot that is filled first.
    """

    SAVED = ("at", "given", "count", "is_input_over")

    def __init__(
        self,
        node: FlatMap,
        context: IterationContext,
        function: DatasetFunction,
        *,
        cycle_length: int = 1,
        block_length: int = 1,
        num_calls: int = 1,
        is_ordered: bool = True,
    ) -> None:
        super().__init__(node, context)
        self._context = context
        self._function = function
        self._block_length = block_length
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._calls: ThreadMap[tuple[Slot, int], Slot] | None = None
        self._slots: list[Slot | None] = [None] * cycle_length
        self._at = 0  # index of the current slot
        self._given = 0  # number of elements that the current slot has yielded in this visit
        self._count = 0  # number of outer elements read
        self._is_input_over = False

    def __next__(self) -> Nest:
        while not self._is_closed:
            slot = self._slots[self._at]
            if slot is None:
                slot = self._next_slot(self._at)
            if slot is None:
                self._end_visit()
                continue
            slot = self._filled(slot)
            if slot.ready:
                return self._give(slot)
            if slot.failure is not None:
                failure, slot.failure = slot.failure, None
                try:
                    raise failure
                finally:
                    del failure  # the traceback of the error references this frame
            slot.close()
            self._slots[self._at] = None
            self._end_visit()
        raise StopIteration

    def _next_slot(self, at: int) -> Slot | None:
        """Return a new slot, stored at index `at`, with the next outer element or its exception; None at the end."""
        if self._is_input_over:
            return None
        slot = Slot(self._count, None, self._function, self._context)
        try:
            slot.element = next(self._input)
            self._count += 1
        except StopIteration:
            self._is_input_over = True
            return None
        except Exception as error:
            slot.fail(error)
        self._slots[at] = slot
        return slot

    def _give(self, slot: Slot) -> Nest:
        self._given += 1
        if self._given == self._block_length:
            self._end_visit()
        return slot.ready.popleft()

    def _end_visit(self) -> None:
        self._given = 0
        self._at = (self._at + 1) % len(self._slots)
        if self._is_input_over and not any(self._slots):
            self.close()

    def _filled(self, slot: Slot) -> Slot:
        """Fill `slot` and return it; if elements are unordered, possibly return another filled slot."""
        if self._num_calls == 1:
            slot.fill(1)
            return slot
        self._fill_ahead()
        while slot.is_at_work and self._calls is not None:
            done = self._calls.take()
            done.is_at_work = False
            if not self._is_ordered:
                self._at, self._given = self._slots.index(done), 0
                return done
        if not slot.is_filled(1):
            slot.fill(1)  # no thread has filled the slot, for example after an exception
        return slot

    def _fill_ahead(self) -> None:
        """Submit the slots of the next visits to the threads, in order."""
        if self._calls is None:
            self._calls = ThreadMap(_fill, self._num_calls, self._is_ordered, "ringlet-interleave")
        for at in self._visits():
            if self._calls.is_full:
                return
            slot = self._slots[at] or self._next_slot(at)
            wanted = self._block_length - (self._given if at == self._at else 0)
            if slot is not None and not slot.is_at_work and not slot.is_filled(wanted):
                slot.is_at_work = True
                self._calls.put((slot, wanted))

    def _visits(self) -> Iterator[int]:
        for step in range(len(self._slots)):
            yield (self._at + step) % len(self._slots)

    def _settle(self) -> None:
        """Wait for all threads to finish filling slots."""
        while self._calls is not None and len(self._calls):
            self._calls.take().is_at_work = False

    def close(self) -> None:
        """Stop the threads; close inner datasets and the input."""
        if self._calls is not None:
            self._calls.close()
            self._calls = None
        for slot in self._slots:
            if slot is not None:
                slot.close()
        self._slots = [None] * len(self._slots)
        super().close()

    def get_state(self) -> State:
        self._settle()
        return {**super().get_state(), "slots": [None if slot is None else slot.get_state() for slot in self._slots]}

    def set_state(self, state: State) -> None:
        """Restore a snapshot; the function is called again for open slots."""
        super().set_state(state)
        for at, saved in enumerate(state["slots"]):
            if saved is not None:
                element = None if saved["element"] is None else load_element(saved["element"], self._node.input)
                slot = self._slots[at] = Slot(saved["number"], element, self._function, self._context)
                slot.set_state(saved, self._node)


def _fill(item: tuple[Slot, int]) -> Slot:
    slot, count = item
    slot.fill(count)
    return slot
