"""The elements of several inner datasets in turn, which a function of the user's makes of elements.

A cycle has *slots*; each holds one inner dataset. A *visit* to a slot gives up to `block_length` elements of it, and
then the next slot is visited. A visit that finds the inner dataset at its end clears the slot; one that finds the slot
clear first opens the inner dataset of the next outer element. With one slot, inner datasets come one behind another.

With threads, slots that are to be visited next are filled ahead, each by one call at a time. Slots are opened in the
order of visits in any case, so that the order of elements does not depend on threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import RestoredFailure
from ringlet.data.graph.node import Downstream, Node, Run, State
from ringlet.data.graph.pipeline_handle import Opened
from ringlet.data.graph.thread_map import Calls
from ringlet.data.operations.user_function import UserFunction, node_of, spread
from ringlet.data.state.saved_elements import load_element, load_elements, save_element, save_elements

if TYPE_CHECKING:
    from ringlet.data.operations.flat_map import FlatMap

__all__ = ["DatasetFunction", "InnerElements"]

# Held while a dataset chooses what it leaves to chance: once for all that a function opens of it, in whichever thread.
_CHOOSING = threading.Lock()


class DatasetFunction(UserFunction):
    """A function of the user's that makes a dataset of an element.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> DatasetFunction(Dataset.range).open(0, 3, Run()).graph.cardinality
    3
    """

    __slots__ = ()

    def __init__(self, function: Callable[..., Any], name: str = "map_func") -> None:
        super().__init__(function, name)

    def node(self, answer: Any, number: int = 0) -> Node:
        """Give the node of what the function gave.

        Raises
        ------
        TypeError
            If that is no dataset.
        """
        node = node_of(answer)
        if node is None:
            raise TypeError(
                f"{self._name} must give a Dataset, and {self.where('gave something else', number)}: {answer!r}. "
                "Dataset.from_tensors(x) is a dataset of one element; map takes functions that give arrays."
            )
        return node

    def open(self, number: int, element: Nest, run: Run) -> Opened:
        """Open the dataset of an element."""
        node = self.node(self(number, *spread(element)), number)
        # Each in a round of its own: a shuffle that the function did not make itself gives each of them another order.
        run = run.in_round(number)
        with _CHOOSING:
            run.begin(node)
        return Opened(node, run)


class Slot:
    """One inner dataset at work, and those of its elements that were read ahead."""

    __slots__ = ("_function", "_is_over", "_opened", "_run", "element", "failure", "is_at_work", "number", "ready")

    def __init__(self, number: int, element: Nest, function: DatasetFunction, run: Run) -> None:
        self.number = number  # of the outer element
        self.element = element
        self._function = function
        self._run = run
        self._opened: Opened | None = None
        self._is_over = False
        self.is_at_work = False  # in a thread
        self.ready: deque[Nest] = deque()
        self.failure: BaseException | None = None  # what is raised behind those that are ready

    def fail(self, error: Exception) -> None:
        """Hold an exception in place of an inner dataset."""
        self.failure = error
        self._is_over = True

    def is_filled(self, count: int) -> bool:
        """Whether the next `count` elements are there, or all there are."""
        return self._is_over or self.failure is not None or len(self.ready) >= count

    def fill(self, count: int) -> None:
        """Read until `count` elements are ready, up to the end or to an exception, which is kept for its place."""
        if self.is_filled(count):
            return
        try:
            if self._opened is None:
                self._is_over = True  # unless it can be opened
                self._opened = self._function.open(self.number, self.element, self._run)
                self._is_over = False
            while len(self.ready) < count:
                self.ready.append(next(self._opened.stream))
        except StopIteration:
            self._is_over = True
        except BaseException as error:
            self.failure = error

    def close(self) -> None:
        """Close the inner dataset."""
        if self._opened is not None:
            self._opened.close()

    def get_state(self) -> State:
        """Give the outer element, the inner state, and what is ready."""
        is_open = self._opened is not None and not self._is_over
        return {
            "number": self.number,
            # Without one there is nothing to open any more.
            "element": None if self._is_over else save_element(self.element),
            "inner": self._opened.get_state() if is_open and self._opened is not None else None,
            "is_over": self._is_over,
            "ready": save_elements(list(self.ready)),
            "failure": None if self.failure is None else RestoredFailure.text(self.failure),
        }

    def set_state(self, state: State, node: Node) -> None:
        """Open the inner dataset again, and go on where a snapshot was taken."""
        self._is_over = state["is_over"]
        if state["inner"] is not None:
            self._opened = self._function.open(self.number, self.element, self._run)
            self._opened.set_state(state["inner"])
        self.ready.extend(load_elements(state["ready"], node))
        self.failure = None if state["failure"] is None else RestoredFailure(state["failure"])


class InnerElements(Downstream):
    """The elements of inner datasets, from several of them in turn.

    Parameters
    ----------
    node : FlatMap
        Whose input gives the outer elements.
    run : Run
    function : DatasetFunction
    cycle_length : int, default 1
        Number of slots.
    block_length : int, default 1
        Elements of a visit.
    num_calls : int, default 1
        How many slots may be filled at once, in threads; with one, elements are made where they are asked for.
    is_ordered : bool, default True
        False visits a slot that is filled, where the next one is not.
    """

    __slots__ = (
        "_at",
        "_block_length",
        "_calls",
        "_count",
        "_function",
        "_given",
        "_is_input_over",
        "_is_ordered",
        "_node",
        "_num_calls",
        "_run",
        "_slots",
    )

    def __init__(
        self,
        node: FlatMap,
        run: Run,
        function: DatasetFunction,
        *,
        cycle_length: int = 1,
        block_length: int = 1,
        num_calls: int = 1,
        is_ordered: bool = True,
    ) -> None:
        super().__init__(node.input.open(run))
        self._node = node
        self._run = run
        self._function = function
        self._block_length = block_length
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._calls: Calls[tuple[Slot, int], Slot] | None = None
        self._slots: list[Slot | None] = [None] * cycle_length
        self._at = 0  # the slot that is visited
        self._given = 0  # elements that this visit gave
        self._count = 0  # outer elements that were read
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
                    del failure  # its traceback holds this frame
            slot.close()
            self._slots[self._at] = None
            self._end_visit()
        raise StopIteration

    def _next_slot(self, at: int) -> Slot | None:
        """Put the next outer element into a slot, or what was raised in its place; None where there is no other."""
        if self._is_input_over:
            return None
        slot = Slot(self._count, None, self._function, self._run)
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
        """Give the slot to read from, filled with what the rest of the visit needs: this one, if there is an order."""
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
            slot.fill(1)  # such as behind an exception
        return slot

    def _fill_ahead(self) -> None:
        """Have threads fill the slots of the next visits, in their order."""
        if self._calls is None:
            self._calls = Calls(_fill, self._num_calls, self._is_ordered, "ringlet-interleave")
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
        """Wait for all threads; what they made is ready then."""
        while self._calls is not None and len(self._calls):
            self._calls.take().is_at_work = False

    def close(self) -> None:
        """End the threads; close inner datasets and the input."""
        if self._calls is not None:
            self._calls.close()
            self._calls = None
        for slot in self._slots:
            if slot is not None:
                slot.close()
        self._slots = [None] * len(self._slots)
        super().close()

    def get_state(self) -> State:
        """Give the place in the cycle, and the states of all slots."""
        self._settle()
        return {
            **super().get_state(),
            "slots": [None if slot is None else slot.get_state() for slot in self._slots],
            "at": self._at,
            "given": self._given,
            "count": self._count,
            "is_input_over": self._is_input_over,
        }

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken: the function is called again for the slots that were open."""
        super().set_state(state)
        self._at, self._given, self._count = state["at"], state["given"], state["count"]
        self._is_input_over = state["is_input_over"]
        for at, saved in enumerate(state["slots"]):
            if saved is not None:
                element = None if saved["element"] is None else load_element(saved["element"], self._node.input)
                slot = self._slots[at] = Slot(saved["number"], element, self._function, self._run)
                slot.set_state(saved, self._node)


def _fill(item: tuple[Slot, int]) -> Slot:
    slot, count = item
    slot.fill(count)
    return slot
