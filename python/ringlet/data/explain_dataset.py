"""Textual descriptions of a dataset's graph and distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.distribution.auto_shard import reads_files
from ringlet.data.distribution.distributed_dataset import DistributedDataset
from ringlet.data.distribution.distribution_plan import Decision
from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.operations.with_options import options_of
from ringlet.data.policies import AutoShardPolicy
from ringlet.nest import flatten

# Maximum number of files listed, and of rows shown for each part.
_MAX_LINES = 8
_MAX_ROWS = 4


def explain(dataset: Dataset | DistributedDataset, steps: int = 0) -> None:
    """Print the operations of a dataset and how it is distributed: policy, reason, and each replica's data.

    Parameters
    ----------
    dataset : Dataset or DistributedDataset
    steps : int, default 0
        Number of steps of a distributed dataset to read and show. Reading them starts a new iteration of the dataset,
        which calls user functions.

    Examples
    --------
    >>> import ringlet
    >>> dataset = Dataset.range(10).batch(5)
    >>> explain(dataset)
    Batch(batch_size=5, drop_remainder=False)  2 elements  TensorSpec(shape=(None,), dtype=int64)
      TableSource  10 elements
    >>> explain(ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(dataset), steps=1)
    worker 0 of 1, 2 of 2 replicas
    policy: DATA (AUTO: TableSource does not read files)
    cut:    each global batch is cut into 2 chunks of ceil(rows / 2) rows
    Prefetch(buffer_size=1)  2 elements  TensorSpec(shape=(None,), dtype=int64)
      Batch(batch_size=5, drop_remainder=False)  2 elements
        TableSource  10 elements
    step 0: replica 0 gets 3 rows [0 1 2], replica 1 gets 2 rows [3 4]
    """
    print(explanation(dataset, steps))


def explanation(dataset: Dataset | DistributedDataset, steps: int = 0) -> str:
    """Return the text that `explain` prints."""
    if isinstance(dataset, Dataset):
        return "\n".join(_graph(dataset.node))
    if not isinstance(dataset, DistributedDataset):
        raise TypeError(f"explain takes a Dataset or a DistributedDataset, got {dataset!r}")
    decision = dataset.decision
    lines = [*_decided(decision)]
    for node in dict.fromkeys(decision.plan.inputs or (decision.plan,)):
        lines += _graph(node) if isinstance(node, Node) else []
    return "\n".join([*lines, *_files(decision), *_steps(dataset, steps)])


def _decided(decision: Decision) -> Iterator[str]:
    place = decision.place
    yield f"worker {place.worker_index} of {place.num_workers}, {place.num_replicas} of {place.total} replicas"
    yield from (f"{name + ':':<8}{text}" for name, text in decision.facts.items())


def _graph(node: Node, depth: int = 0) -> Iterator[str]:
    """Yield one line for each operation, starting with the last operation; inputs are indented."""
    settings = ", ".join(f"{name}={value}" for name, value in _settings(node).items())
    line = f"{'  ' * depth}{type(node).__name__}{f'({settings})' if settings else ''}  {_count(node.cardinality)}"
    # The specs are omitted if inferring them could call user functions.
    yield line if depth or node.runs_user_code else f"{line}  {node.element_spec}"
    for source in node.inputs:
        yield from _graph(source, depth + 1)


def _settings(node: Node) -> dict[str, Any]:
    settings = node.settings if node.inputs else {}
    options = options_of(node)
    return {**settings, "options": options} if type(node).__name__ == "WithOptions" else settings


def _count(cardinality: int) -> str:
    if cardinality == INFINITE_CARDINALITY:
        return "no end"
    return "elements unknown" if cardinality == UNKNOWN_CARDINALITY else f"{cardinality} elements"


def _files(decision: Decision) -> Iterator[str]:
    """Yield lines that list the files of this worker, if files are sharded and their names are known."""
    if decision.policy is not AutoShardPolicy.FILE:
        return
    for names in _names_of(decision.plan.inputs[0] if decision.plan.inputs else decision.plan):
        read = [name.decode() if isinstance(name, bytes) else str(name) for name in Dataset(names)]
        yield f"files of this worker: {len(read)}"
        yield from (f"  {name}" for name in read[:_MAX_LINES])
        if len(read) > _MAX_LINES:
            yield f"  and {len(read) - _MAX_LINES} more"


def _names_of(node: Any) -> Iterator[Node]:
    """Yield the nodes whose elements are file names, if they call no user functions and their number is known."""
    if reads_files(node):
        names = node.inputs[0]
        if not names.runs_user_code and names.cardinality >= 0:
            yield names
        return
    for source in node.inputs:
        yield from _names_of(source)


def _steps(dataset: DistributedDataset, count: int) -> Iterator[str]:
    if count < 1:
        return
    place = dataset.decision.place
    with iter(dataset) as iterator:
        for number, step in zip(range(count), iterator, strict=False):
            yield f"step {number}: {', '.join(_parts(step, place))}"


def _parts(step: Nest, place: InputPlacement) -> Iterator[str]:
    first = flatten(step)[0][0]
    parts: tuple[Any, ...] = getattr(first, "values", (first,))
    for number, part in enumerate(parts, place.worker_index * place.num_replicas):
        shape: tuple[int, ...] = getattr(part, "shape", ())
        if not shape:
            yield f"replica {number} gets {part!r}"
            continue
        shown = f" {part[:_MAX_ROWS]}" if len(shape) == 1 and shape[0] else ""
        more = " ..." if shown and shape[0] > _MAX_ROWS else ""
        yield f"replica {number} gets {shape[0]} rows{shown}{more}"
