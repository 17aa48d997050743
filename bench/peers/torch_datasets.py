"""PyTorch's DataLoader over the same arrays, with each batch split into a chunk for each replica."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dataset_peer import DatasetPeer
from peer import begin, serve


class TorchDatasets(DatasetPeer):
    """``usual`` fetches rows one by one and collates them; ``indexed`` fetches each batch with one index of tensors."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "shuffled batches": ("usual", "indexed"),
        "range": ("usual", "indexed"),
    }

    def __init__(self, torch: Any, num_replicas: int) -> None:
        super().__init__(num_replicas)
        self._torch = torch
        self.version = f"torch {torch.__version__}"
        torch.set_num_threads(1)
        self._tensors = (torch.from_numpy(self.features), torch.from_numpy(self.labels))

    def steps(self, question: str, variant: str) -> Iterable[Any]:
        """Return the iterable to traverse."""
        data = self._torch.utils.data
        dataset = data.TensorDataset(*(self._tensors if question == "shuffled batches" else self._tensors[1:]))
        is_shuffled = question == "shuffled batches"
        if variant == "usual":
            return Chunks(data.DataLoader(dataset, self.batch, shuffle=is_shuffled), self.num_ranks)
        sampler = data.RandomSampler(dataset) if is_shuffled else data.SequentialSampler(dataset)
        batches = data.BatchSampler(sampler, self.batch, drop_last=False)
        return Chunks(data.DataLoader(dataset, sampler=batches, batch_size=None), self.num_ranks)

    def parts(self, question: str, variant: str, step: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the arrays of each replica in a step."""
        for part in zip(*step, strict=True):
            yield tuple(component.numpy() for component in part)


class Chunks:
    """The batches of a loader, each tensor split into chunks."""

    def __init__(self, loader: Any, num_chunks: int) -> None:
        self._loader, self._num_chunks = loader, num_chunks

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            yield [component.chunk(self._num_chunks) for component in batch]


def main() -> None:
    """Answer questions as all replicas."""
    options = begin()
    import torch
    import torch.utils.data

    serve(TorchDatasets(torch, options.ranks), options)


if __name__ == "__main__":
    main()
