"""PyTorch's DataLoader as a source: elements, distribution, states, worker processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset, DistributedDataset
from tests.data.state_cases import through_a_file
from tests.frameworks.libraries import library

torch = library("torch")


class Squares(torch.utils.data.Dataset):
    """Number and square."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.tensor([index], dtype=torch.float32), index * index


def loader(batch_size=4, seed=None, **more):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return torch.utils.data.DataLoader(
        Squares(), batch_size=batch_size, shuffle=seed is not None, generator=generator, **more
    )


def numbers(elements):
    return [int(x) for element in elements for x in element[0].ravel()]


def test_batches_come_as_the_loader_gives_them():
    elements = list(Dataset.from_iterable(loader()))
    assert len(elements) == 5
    assert [type(part) for part in elements[0]] == [torch.Tensor] * 2
    assert numbers(elements) == list(range(20))


def test_a_loader_is_distributed_as_views_of_its_batches():
    batches = list(loader())
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = list(strategy.experimental_distribute_dataset(batches))
    parts = steps[1][0].values
    assert [part.tolist() for part in parts] == [[[4.0], [5.0]], [[6.0], [7.0]]]
    assert parts[0].data_ptr() == batches[1][0].data_ptr()
    assert numbers(
        part for step in strategy.experimental_distribute_dataset(loader()) for part in ([p] for p in step[0].values)
    ) == list(range(20))


@pytest.mark.parametrize("replicas", [1, 3])
def test_no_row_of_a_loader_is_lost_or_doubled(replicas):
    seen = []
    for step in DistributedDataset(loader(batch_size=7), replicas):
        seen += numbers([[part] for part in (step[0].values if replicas > 1 else [step[0]])])
    assert sorted(seen) == list(range(20))


def test_operations_follow_a_loader():
    dataset = Dataset.from_iterable(loader()).map(lambda batch: batch[1].numpy() + 1).shuffle(5, seed=0).prefetch(2)
    assert sorted(int(x) for batch in dataset for x in batch) == sorted(i * i + 1 for i in range(20))


def test_worker_processes_of_a_loader_end_with_the_iterator():
    import multiprocessing

    iterator = iter(Dataset.from_iterable(loader(num_workers=1)))
    next(iterator)
    assert multiprocessing.active_children()
    iterator.close()
    del iterator
    assert not [child for child in multiprocessing.active_children() if child.is_alive()]


def continued(make, taken):
    with iter(make()) as first, iter(make()) as second:
        for _ in itertools.repeat(None, taken):
            next(first)
        second.set_state(through_a_file(first.get_state()))
        return numbers(second), numbers(first)


def test_a_restored_iterator_goes_on_where_a_seeded_loader_was():
    restored, expected = continued(lambda: Dataset.from_iterable(loader(seed=3)), 2)
    assert restored == expected
    assert len(restored) == 12


def test_tensors_in_a_buffer_are_saved_and_come_back_as_tensors():
    def make():
        return Dataset.from_iterable(
            [(torch.tensor([n], dtype=torch.bfloat16), np.int64(n)) for n in range(9)]
        ).shuffle(4)

    with iter(make()) as first, iter(make()) as second:
        next(first)
        second.set_state(first.get_state())
        restored, expected = list(second), list(first)
    assert numbers(restored) == numbers(expected)
    assert {element[0].dtype for element in restored} == {torch.bfloat16}


def test_a_loader_that_tells_its_place_is_asked_for_it():
    class Stateful(torch.utils.data.DataLoader):
        """The two methods that torchdata's loader has."""

        place, loaded = 0, []

        def __iter__(self):
            start, self.place = self.place, 0
            for number, batch in enumerate(super().__iter__()):
                if number >= start:
                    self.place = number + 1
                    yield batch

        def state_dict(self):
            return {"place": self.place, "rng": torch.get_rng_state()}

        def load_state_dict(self, state):
            assert state["rng"].dtype == torch.uint8
            self.place = state["place"]
            self.loaded.append(self.place)

    restored, expected = continued(lambda: Dataset.from_iterable(Stateful(Squares(), batch_size=4)), 3)
    assert restored == expected == list(range(12, 20))
    assert Stateful.loaded == [3]


def test_an_error_in_a_data_set_names_the_element():
    class Broken(Squares):
        def __getitem__(self, index):
            if index == 9:
                raise KeyError("row 9 is broken")
            return super().__getitem__(index)

    iterator = iter(Dataset.from_iterable(torch.utils.data.DataLoader(Broken(), batch_size=4)))
    next(iterator), next(iterator)
    with pytest.raises(KeyError, match="row 9") as caught:
        next(iterator)
    assert "the DataLoader raised this for element 2" in caught.value.__notes__[0]


def train_until_a_signal_to_the_process_group(folder, worker_init_fn):
    """Return the exit status of a training whose batches come from a loader process."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        with contextlib.suppress(Exception):
            batches = iter(loader(1, num_workers=1, worker_init_fn=worker_init_fn))
            manager = ringlet.train.CheckpointManager(ringlet.train.Checkpoint(), folder, 1)
            try:
                for step in ringlet.train.resume(manager, 10):
                    if step == 2:
                        os.killpg(0, signal.SIGTERM)
                    next(batches), next(batches)
            except SystemExit as end:
                os._exit(end.code)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(("worker_init_fn", "status"), [(None, 1), (ringlet.train.protect_loader_process, 42)])
def test_its_processes_survive_a_signal_to_the_process_group_on_request(tmp_path, worker_init_fn, status):
    assert train_until_a_signal_to_the_process_group(tmp_path, worker_init_fn) == status
    assert len(list(tmp_path.glob("*.safetensors"))) == (status == 42)
