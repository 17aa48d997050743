"""Tensors of PyTorch go into collectives and come back as tensors, in memory of their own, written once."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.single_controller import plan_all_reduce_all
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.frameworks.libraries import library

torch = library("torch")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
]  # fmt: skip


def alone() -> Member:
    return Group(1).member(0)


@pytest.mark.parametrize("name", DTYPES)
def test_a_tensor_is_read_where_it_is_and_its_dtype_comes_back(name: str) -> None:
    tensor = torch.tensor([0, 1, 1, 0]).to(getattr(torch, name))
    kind = kind_of(tensor)
    assert kind.as_ndarray(tensor).ctypes.data == tensor.data_ptr()
    result = alone().all_reduce(tensor, Op.MAX if not tensor.is_complex() else Op.SUM)
    assert (type(result), result.dtype) == (torch.Tensor, tensor.dtype)
    assert result.to(torch.complex64).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("count", [3, 100_000])
def test_each_rank_may_write_to_its_own_result(count: int) -> None:
    def step(member: Member) -> Any:
        result = member.all_reduce(torch.full((count,), member.rank + 1, dtype=torch.bfloat16))
        member.barrier()
        return result.mul_(member.rank + 1)

    first, second = run_on_ranks(2, step)
    assert first.tolist() == [3] * count
    assert second.tolist() == [6] * count


def test_a_result_is_written_once_and_handed_over_without_a_copy() -> None:
    core_wrote_to: list[int] = []

    class Watched:
        """The core's member, with a note of where it was asked to write."""

        def __init__(self, core: Any) -> None:
            self.core = core

        def all_reduce(self, arrays: Any, op: int, algorithm: int, outs: Any) -> Any:
            results = self.core.all_reduce(arrays, op, algorithm, outs)
            core_wrote_to.append(outs[0].ctypes.data)
            return results

    from ringlet.collectives.reduction_collectives import Algorithm, _all_reduce

    core = Watched(alone()._core)
    (result,) = _all_reduce(core, [torch.ones(1000)], Op.SUM, Algorithm.AUTO, None)  # type: ignore[arg-type]
    assert core_wrote_to == [result.data_ptr()]
    assert result.data_ptr() % 64 == 0


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4).T,
        torch.arange(12, dtype=torch.bfloat16)[::3],
        torch.ones(3).expand(2, 3),
        torch.tensor([1 + 2j, 3 - 1j]).conj(),
        torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
        torch.tensor(5.0, dtype=torch.bfloat16),
        torch.zeros(0, 3),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(2, requires_grad=True).detach(),
    ],
    ids=["transposed", "strided", "expanded", "conjugated", "negated", "0-d", "empty", "parameter", "detached"],
)
def test_a_tensor_of_any_layout_gives_what_its_values_say(tensor: Any) -> None:
    result = alone().all_reduce(tensor)
    assert type(result) is torch.Tensor
    assert torch.equal(result, tensor)
    assert result.shape == tensor.shape


def sparse() -> Any:
    return torch.eye(2).to_sparse()


def nested() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        # what is given, what is said
        (lambda: torch.ones(2, requires_grad=True), r"requires gradients.*x\.detach\(\), or .* torch\.no_grad\(\)"),
        (lambda: torch.ones(2, requires_grad=True) * 2, r"requires gradients.*x\.detach\(\)"),
        (lambda: torch.nn.Parameter(torch.ones(2)), r"a Parameter that requires gradients"),
        (
            lambda: torch.ones(2, device="meta"),
            "on the meta device, which stores no values: create a tensor with values first",
        ),
        (sparse, r"of layout torch\.sparse_coo.*\.to_dense\(\)"),
        (quantized, r"a quantized Tensor.*\.dequantize\(\)"),
        (nested, r"of rows of different lengths \(nested\): pass x\.to_padded_tensor\(0\)"),
        (lambda: torch.nn.parameter.UninitializedParameter(requires_grad=False), "Parameter .* that NumPy cannot read"),
    ],
)
def test_what_has_no_memory_to_read_is_refused_with_what_to_call(make: Any, said: str) -> None:
    tensor = make()
    for call in (alone().all_reduce, alone().all_gather, alone().broadcast, alone().plan_all_reduce):
        with pytest.raises(InvalidArgumentError, match=said):
            call(tensor)


def test_a_message_tells_which_array_is_at_fault() -> None:
    with pytest.raises(InvalidArgumentError, match="array 1 of 2 is a Tensor that requires"):
        alone().all_reduce_many([torch.ones(2), torch.ones(2, requires_grad=True)])


def test_a_tensor_on_another_device_is_refused_with_what_to_call() -> None:
    class Elsewhere:
        """What this machine may not have."""

        device = type("Device", (), {"type": "cuda", "__str__": lambda _: "cuda:1"})()
        layout = torch.strided

    with pytest.raises(InvalidArgumentError, match=r"on the device cuda:1.*CPU memory.*\.cpu\(\)"):
        kind_of(torch.ones(1)).as_ndarray(Elsewhere())


def test_what_a_transform_of_torch_has_wrapped_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="NumPy cannot read"):
        torch.func.vmap(lambda x: alone().all_reduce(x))(torch.ones(2, 2))


def test_under_no_grad_parameters_need_no_detach() -> None:
    with torch.no_grad():
        result = alone().all_reduce(torch.nn.Parameter(torch.ones(2)))
    assert (type(result), result.requires_grad) == (torch.Tensor, False)


def test_gradients_are_reduced_where_they_are() -> None:
    def step(member: Member) -> Any:
        parameter = torch.nn.Parameter(torch.ones(3))
        (parameter * (member.rank + 1)).sum().backward()
        memory = parameter.grad.data_ptr()
        assert member.all_reduce(parameter.grad, out=parameter.grad) is parameter.grad
        assert parameter.grad.data_ptr() == memory
        return parameter.grad

    assert [gradient.tolist() for gradient in run_on_ranks(2, step)] == [[3, 3, 3]] * 2


def test_an_output_that_shows_other_values_than_its_memory_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"out is a .* view, .* out\.clone\(\)"):
        alone().all_reduce(torch.ones(2, dtype=torch.complex64), out=torch.ones(2, dtype=torch.complex64).conj())


def test_the_mean_of_integers_is_float64() -> None:
    assert alone().all_reduce(torch.tensor([1, 2]), Op.MEAN).dtype == torch.float64


def test_bfloat16_without_ml_dtypes_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(InvalidArgumentError, match="pip install ml_dtypes"):
        alone().all_reduce(torch.ones(2, dtype=torch.bfloat16))


def test_a_dtype_that_the_core_lacks_is_refused_by_name() -> None:
    tensor = torch.zeros(2, dtype=torch.float8_e8m0fnu)
    with pytest.raises(InvalidArgumentError, match=r"a Tensor of torch\.float8_e8m0fnu that NumPy cannot read"):
        alone().all_reduce(tensor)


def test_numpy_scalars_and_lists_are_still_numpy_s() -> None:
    assert type(alone().all_reduce([1.0])) is np.ndarray


def test_autograd_knows_of_a_write_to_an_output() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    loss = (y * y).sum()  # whose gradient needs the values of y
    alone().all_reduce(torch.full((2,), 7.0), out=y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_tensor_of_inference_mode_may_be_an_output() -> None:
    with torch.inference_mode():
        out = torch.zeros(2)
    assert alone().all_reduce(torch.ones(2), out=out) is out
    assert out.tolist() == [1, 1]


def test_an_expanded_output_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"out is an expanded view, .* out\.clone\(\)"):
        alone().all_reduce(torch.tensor([1.0, 2.0, 3.0]), out=torch.zeros(1).expand(3))


def test_sizes_that_tensors_tell_each_other_are_not_taken_for_an_array() -> None:
    def step(member: Member) -> Any:
        return member.all_gather(torch.tensor([5, 6, 7]) if member.rank == 0 else np.array([9]))

    with pytest.raises(CollectiveMismatchError, match=r"torch\.Tensor"):
        run_on_ranks(2, step)


def test_a_plan_for_all_ranks_writes_to_the_tensors_that_were_given() -> None:
    arrays, outs = [torch.ones(3), torch.ones(3)], [torch.zeros(3), torch.zeros(3)]
    plan = plan_all_reduce_all(arrays, Op.SUM, outs, 1)
    arrays[0].fill_(4)
    results = plan()
    assert all(result is out for result, out in zip(results, outs, strict=True))
    assert [out.tolist() for out in outs] == [[5, 5, 5]] * 2


@pytest.mark.parametrize(
    ("arrays", "outs"),
    [
        ([torch.ones(3)] * 2, [torch.zeros(6)[::2], torch.zeros(6)[::2]]),
        ([torch.ones(3, dtype=torch.complex64).conj()] * 2, None),
        ([torch.ones(2, 3).T] * 2, None),
    ],
    ids=["strided outputs", "conjugated arrays", "transposed arrays"],
)
def test_a_plan_for_all_ranks_refuses_what_it_would_have_to_copy(arrays: Any, outs: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a plan does not convert arrays"):
        plan_all_reduce_all(arrays, Op.SUM, outs, 1)
