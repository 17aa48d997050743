"""The backend "ringlet" of ``ray.util.collective``, for arrays in CPU memory and actors of one host.

Importing this module registers the backend; the driver and each actor import it before they create a group.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import ray
    from ray.experimental import internal_kv
    from ray.util.collective import register_collective_backend
    from ray.util.collective.collective_group.base_collective_group import BaseGroup
except ModuleNotFoundError as error:
    raise ImportError(
        "ringlet.ray requires Ray, which is not installed: pip install ray, or pip install 'ringlet[ray]'"
    ) from error
except ImportError as error:
    raise ImportError(
        "ringlet.ray requires a version of Ray with ray.util.collective.register_collective_backend, but Ray "
        f"{ray.__version__} is installed: pip install --upgrade ray"
    ) from error

from ringlet.collectives import Member, Op
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray, writeable_memory
from ringlet.collectives.process_group import join_job
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from ringlet.rendezvous.host_check import different_places, own_record
from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["RingletGroup"]

_OPS = {"SUM": Op.SUM, "PRODUCT": Op.PROD, "MIN": Op.MIN, "MAX": Op.MAX}
_POLL_SECONDS = 0.02


class RingletGroup(BaseGroup):  # type: ignore[misc]
    """A collective group of actors on one host.

    Created by ``ray.util.collective.init_collective_group`` and similar functions with ``backend="ringlet"``.
    The functions of ``ray.util.collective`` call its methods, with NumPy arrays and tensors in CPU memory.

    Examples
    --------
    >>> import ray, ringlet.ray
    >>> from ray.util import collective
    >>> @ray.remote
    ... class Actor:
    ...     def step(self, rank):
    ...         import numpy as np, ringlet.ray
    ...         collective.init_collective_group(2, rank, backend="ringlet", group_name="sum")
    ...         x = np.full(2, rank + 1.0)
    ...         collective.allreduce(x, group_name="sum")
    ...         return x
    >>> actors = [Actor.remote() for _ in range(2)]
    >>> ray.get([actor.step.remote(rank) for rank, actor in enumerate(actors)])
    [array([3., 3.]), array([3., 3.])]
    """

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        super().__init__(world_size, rank, group_name)
        self._member = _join(world_size, rank, group_name)

    @classmethod
    def backend(cls) -> str:
        """Return the name of the backend."""
        return "RINGLET"

    @classmethod
    def check_backend_availability(cls) -> bool:
        """Return whether this operating system is supported."""
        return sys.platform == "linux"

    def destroy_group(self) -> None:
        """Leave the group."""
        self._member.close()

    def allreduce(self, tensor: Any, allreduce_options: Any = None) -> None:
        """Combine the arrays of all ranks in place."""
        x = _one(tensor)
        self._member.all_reduce(x, _op(allreduce_options), out=x)

    def barrier(self, barrier_options: Any = None) -> None:
        """Wait for all ranks."""
        self._member.barrier()

    def reduce(self, tensor: Any, reduce_options: Any) -> None:
        """Combine the arrays of all ranks on the root, in place."""
        x, root = _one(tensor), reduce_options.root_rank
        self._member.reduce(x, _op(reduce_options), root, out=x if root == self._rank else None)

    def broadcast(self, tensor: Any, broadcast_options: Any) -> None:
        """Send the root's array to all ranks."""
        x = _one(tensor)
        self._member.broadcast(x, broadcast_options.root_rank, out=x)

    def allgather(self, tensor_list: Any, tensor: Any, allgather_options: Any = None) -> None:
        """Send the array of each rank to all ranks."""
        outs, x = _one(tensor_list), as_ndarray(_one(tensor))
        result = self._member.all_gather(x.reshape(-1))
        sizes = [writeable_memory(out).size for out in outs]
        if sum(sizes) != result.size or sizes[self._rank] != x.size:
            raise InvalidArgumentError(
                f"allgather: the ranks sent {result.size} elements, but the outputs hold {sizes}: pass outputs with "
                "the shapes of the ranks' arrays."
            )
        for out, block in zip(outs, np.split(result, np.cumsum(sizes)[:-1]), strict=True):
            _store(block, out)

    def reducescatter(self, tensor: Any, tensor_list: Any, reducescatter_options: Any = None) -> None:
        """Combine the arrays with the same index in the lists of all ranks; rank r receives the result of index r."""
        out, blocks = _one(tensor), [as_ndarray(block).reshape(-1) for block in _one(tensor_list)]
        if {block.size for block in blocks} != {writeable_memory(out).size}:
            raise InvalidArgumentError(
                f"reducescatter got blocks of {[block.size for block in blocks]} elements and an output of "
                f"{writeable_memory(out).size}: pass equal sizes."
            )
        _store(self._member.reduce_scatter(np.concatenate(blocks), _op(reducescatter_options)), out)

    def send(self, tensor: Any, send_options: Any) -> None:
        """Send an array to a rank."""
        self._member.send(_one(tensor), send_options.dst_rank)

    def recv(self, tensor: Any, recv_options: Any) -> None:
        """Receive an array from a rank."""
        self._member.recv(recv_options.src_rank, out=_one(tensor))


def _join(world_size: int, rank: int, group_name: str) -> Member:
    context = ray.get_runtime_context()
    name = f"{context.gcs_address} {context.namespace} {group_name}"  # the GCS address identifies the Ray cluster
    seconds = resolve_timeout(None)
    keys = [f"ringlet {name} {number}".encode() for number in range(world_size)]
    internal_kv._internal_kv_put(keys[rank], json.dumps(own_record()), overwrite=True)
    if places := different_places(_records(keys, seconds)):
        raise FailedPreconditionError(
            "the ringlet backend connects actors of one user on one host, in the same network and PID namespaces: "
            f'{places}. Place the actors on one node, or use backend="gloo".'
        )
    (member,) = join_job(Job("ray.util.collective", name, world_size), [rank], seconds)
    internal_kv._internal_kv_del(keys[rank])  # all ranks have read this record
    return member


def _records(keys: Sequence[bytes], seconds: float) -> list[dict[str, Any]]:
    """Wait for the records of all ranks, and return them."""
    deadline = time.monotonic() + seconds
    records: dict[int, dict[str, Any]] = {}
    while len(records) < len(keys):
        for number in set(range(len(keys))) - records.keys():
            text = internal_kv._internal_kv_get(keys[number])
            if text is not None and not _is_stale(record := json.loads(text)):
                records[number] = record
        if time.monotonic() > deadline:
            missing = ranks_text(set(range(len(keys))) - records.keys())
            raise DeadlineExceededError(
                f"{missing} of {len(keys)} did not join the group within {seconds:g} s: call init_collective_group on "
                "each actor once, or allow more time with RINGLET_TIMEOUT_SECONDS."
            )
        time.sleep(_POLL_SECONDS if len(records) < len(keys) else 0)
    return [records[number] for number in range(len(keys))]


def _is_stale(record: dict[str, Any]) -> bool:
    """Return whether a record belongs to an actor of this host that has exited."""
    mine, other = ProcessIdentity.of_this_process(), ProcessIdentity.from_record(record["process"])
    return (mine.boot_id, mine.pid_namespace) == (other.boot_id, other.pid_namespace) and other.has_ended()


def _one(values: Any) -> Any:
    if len(values) != 1:
        raise InvalidArgumentError(f"got a list of {len(values)} arrays: pass one array per call.")
    return values[0]


def _op(options: Any) -> Op:
    return _OPS["SUM" if options is None else options.reduceOp.name]


def _store(block: Any, out: Any) -> None:
    memory = writeable_memory(out)
    memory[...] = block.reshape(memory.shape)
    if (kind := kind_of(out)) is not None:
        kind.note_write(out)


register_collective_backend("ringlet", RingletGroup)
