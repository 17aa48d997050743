"""What our operations send, beside what XLA's compiler sends for the same programs on the same shardings.

Recorded from jax 0.10.2 on eight host devices, with the Shardy propagator.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Mesh, PartitionSpec, explain, shard
from ringlet.sharding.halo.conv import conv_general
from ringlet.sharding.halo.pooling import max_pool
from ringlet.sharding.resharding.reshard import settled
from ringlet.sharding.sharded_array import ShardedArray

GOLDEN = json.loads((Path(__file__).parent / "golden" / "spmd_collectives_shardy.json").read_text(encoding="utf-8"))
PROGRAMS = {program["name"]: program for program in GOLDEN["programs"]}

IMAGES = ("NHWC", "HWIO", "NHWC")


def added(x: Any) -> Any:
    y = x.copy()
    np.add.at(y, [1, 5, 6], np.ones((3, 8), np.float32))
    return y


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=0))
    return e / np.sum(e, axis=0)


def conv(*, stride: int = 1, padding: str = "SAME") -> Callable[[Any, Any], Any]:
    return lambda x, kernel: conv_general(x, kernel, (stride, stride), padding, dimension_numbers=IMAGES)


OURS: dict[str, Callable[..., Any]] = {
    "add same": np.add,
    "add mismatched x,y vs y,x": np.add,
    "add sharded + replicated": np.add,
    "broadcast row": np.add,
    "sum over sharded dim": lambda x: np.sum(x, axis=0),
    "sum over unsharded dim": lambda x: np.sum(x, axis=1),
    "sum all": np.sum,
    "max over sharded dim": lambda x: np.max(x, axis=0),
    "argmax over sharded dim": lambda x: np.argmax(x, axis=0),
    "sum to reduce-scatter": lambda x: np.sum(x, axis=0),
    "matmul case1 I_x J . J K_y": np.matmul,
    "matmul case2 I J_x . J K": np.matmul,
    "matmul case3 I J_x . J_x K": np.matmul,
    "matmul case3 -> K_x": np.matmul,
    "matmul case4 I_x J . J K_x": np.matmul,
    "matmul 2D I_x J_y . J_y K": np.matmul,
    "matmul 2D I_x J_y . J_x K_y": np.matmul,
    "batched matmul batch sharded": np.matmul,
    "einsum outer": lambda a, b: np.einsum("i,j->ij", a, b),
    "transpose": np.transpose,
    "reshape split sharded dim": lambda x: np.reshape(x, (4, 2, 8)),
    "reshape merge sharded major": np.ravel,
    "reshape merge sharded minor": np.ravel,
    "reshard x->replicated": lambda x: x,
    "reshard dim0->dim1": lambda x: x,
    "reshard x->y same dim": lambda x: x,
    "reshard xy->yx order": lambda x: x,
    "reshard replicated->x": lambda x: x,
    "reshard swap (x,y)->(y,x)": lambda x: x,
    "concat along sharded": lambda a, b: np.concatenate([a, b], axis=0),
    "concat along unsharded": lambda a, b: np.concatenate([a, b], axis=1),
    "slice [2:6] sharded": lambda x: x[2:6],
    "slice step 2 sharded": lambda x: x[::2],
    "slice unsharded dim": lambda x: x[:, 2:6],
    "reverse sharded": lambda x: x[::-1],
    "roll sharded by 1": lambda x: np.roll(x, 1, axis=0),
    "pad sharded (1,1)": lambda x: np.pad(x, ((1, 1), (0, 0))),
    "diff sharded": lambda x: x[1:] - x[:-1],
    "cumsum sharded": lambda x: np.cumsum(x, axis=0),
    "sort sharded": lambda x: np.sort(x, axis=0),
    "sort unsharded": lambda x: np.sort(x, axis=1),
    "take rows replicated idx": lambda x: np.take(x, [1, 5, 6], axis=0),
    "take cols": lambda x: np.take(x, [1, 5, 6], axis=1),
    "scatter-add rows": added,
    "gather sharded idx, replicated table": lambda table, index: np.take(table, index.astype(np.int32) % 8, axis=0),
    "conv3x3 SAME H_x": conv(),
    "conv3x3 SAME H_x W_y": conv(),
    "conv3x3 VALID H_x": conv(padding="VALID"),
    "conv3x3 stride2 SAME H_x": conv(stride=2),
    "conv7x7 SAME H_x (halo 3, shard 4)": conv(),
    "conv C_in sharded": conv(),
    "conv C_out sharded": conv(),
    "conv batch sharded": conv(),
    "maxpool 2x2/2 H_x": lambda x: max_pool(x, (2, 2), (2, 2), "VALID"),
    "maxpool 3x3/1 SAME H_x": lambda x: max_pool(x, (3, 3), (1, 1), "SAME"),
    "fft unsharded": lambda x: np.fft.fft(x, axis=1),
    "fft sharded": lambda x: np.fft.fft(x, axis=0),
    "softmax over sharded": softmax,
    "cholesky sharded": np.linalg.cholesky,
}

# Programs whose collectives are to be XLA's, by kind and shape.
SAME = [name for name in PROGRAMS if name.startswith(("matmul", "conv", "maxpool"))]
# Of these, those in which we do something cheaper.
CHEAPER = {
    "matmul case2 I J_x . J K": "the second operand is sliced for free, and the product is smaller than the first",
    "matmul case3 -> K_x": "a reduce-scatter; XLA combines all of it on every device and keeps a slice",
    "conv3x3 VALID H_x": "the image is on every device; XLA cuts it first, and then needs its neighbours",
    "conv C_in sharded": "image and kernel are smaller than the parts of the result that would be combined",
}

# Groups of the all-gathers whose groups the record leaves out.
UNSAID = {"f32[4,8]": 4, "f32[8,8]": 2}
SIZES = {"f32": 4, "s32": 4, "c64": 8}


def spec_of(text: str) -> PartitionSpec:
    """Read ``P('x', None)``."""
    entries = ast.literal_eval(text.removeprefix("P").replace("()", "(,)").replace("(,)", "()"))
    return PartitionSpec(*(entries if isinstance(entries, tuple) else (entries,)))


def shapes_in(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (dtype, tuple(int(size) for size in sizes.split(",") if size))
        for dtype, sizes in re.findall(r"(\w+)\[([\d,]*)\]", text)
    ]


def group_size(collective: dict[str, Any]) -> int:
    """How many devices take part together."""
    text = collective["groups"]
    if text is None:
        return UNSAID[collective["result"]]
    if text.startswith("mesh["):
        axes, used = text.split("]")
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", axes))
        return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", used))
    if text.startswith("{"):
        return len(text[2:].split("}", maxsplit=1)[0].split(","))
    return int(re.findall(r"\d+", text)[1])


def bytes_sent(collective: dict[str, Any]) -> int:
    """Bytes that all eight devices send together for a collective of XLA."""
    pieces = shapes_in(collective["result"])
    nbytes = [SIZES[dtype] * math.prod(shape) for dtype, shape in pieces]
    kind = collective["op"]
    if kind == "collective-permute":
        pairs = re.findall(r"\{(\d),(\d)\}", collective["pairs"])
        return nbytes[0] * sum(source != target for source, target in pairs)
    if kind == "all-to-all":
        return 8 * sum(nbytes[1:])
    members = group_size(collective)
    times = {"all-gather": 1, "all-reduce": 2}[kind]
    return times * 8 * nbytes[0] * (members - 1) // members


def operands(program: dict[str, Any]) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(shape).astype(np.float32) for shape, _, _ in program["inputs"]]
    if "gather" in program["name"]:
        arrays[1] = np.arange(8, dtype=np.float32)[::-1].copy()
    if "cholesky" in program["name"]:
        arrays[0] = (arrays[0] @ arrays[0].T + 8 * np.eye(8)).astype(np.float32)
    return arrays


def run(name: str) -> tuple[Any, Any, Any]:
    """The result, what it is untiled, and the report."""
    program = PROGRAMS[name]
    arrays = operands(program)
    meshes = [Mesh(axes) for _, _, axes in program["inputs"]]
    tiled = [
        shard(array, mesh.sharding(*spec_of(spec).entries))
        for array, mesh, (_, spec, _) in zip(arrays, meshes, program["inputs"], strict=True)
    ]
    with explain() as report, warnings.catch_warnings():
        warnings.simplefilter("ignore", GatherWarning)
        result = OURS[name](*tiled)
        if program["out_requested"]:
            result = result.reshard(meshes[0].sharding(*spec_of(program["out_requested"]).entries))
        elif isinstance(result, ShardedArray):
            result = settled(result)
    return result, OURS[name](*arrays) if not program["name"].startswith("reshard") else arrays[0], report


def test_every_program_of_the_record_is_run():
    assert OURS.keys() == PROGRAMS.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_untiled(name):
    result, untiled, _ = run(name)
    np.testing.assert_allclose(np.asarray(result), untiled, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_bytes_are_sent_than_by_xla(name):
    theirs = sum(map(bytes_sent, PROGRAMS[name]["collectives"]))
    ours = run(name)[2].nbytes
    assert ours <= theirs, f"{name}: {ours} bytes, XLA {theirs}"


@pytest.mark.parametrize("name", SAME)
def test_products_and_windows_need_the_collectives_that_xla_has(name):
    ours = sorted((collective.kind, collective.shape) for collective in run(name)[2].collectives)
    theirs = sorted((each["op"], shapes_in(each["result"])[0][1]) for each in PROGRAMS[name]["collectives"])
    assert (ours == theirs) != (name in CHEAPER), f"{name}: {ours}, XLA {theirs}"
