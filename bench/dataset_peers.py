"""tf.data and PyTorch's DataLoader, asked the questions of ``bench.datasets`` in separate processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.dataset_questions import RECORDS, Sizes
from bench.environments import python_of
from bench.machine import ROOT
from bench.peer_process import PeerProcess
from bench.peer_table import missing_environments
from bench.strategy_questions import Question

__all__ = ["PEERS", "DatasetPeers", "peer_title"]

# What messages call a peer: its environment and its program.
PEERS = {"tf.data": ("tensorflow", "tensorflow_datasets.py"), "DataLoader": ("gloo", "torch_datasets.py")}

_START_SECONDS, _ANSWER_SECONDS = 120.0, 300.0


def peer_title(peer: str, variant: str, title: str) -> str:
    """Return the title of a peer's answer to a question.

    Examples
    --------
    >>> peer_title("tf.data", "distributed", "range P=2")
    'tf.data, distributed: range P=2'
    """
    return f"{peer}, {variant}: {title}"


class DatasetPeers:
    """Both peers, once for each number of replicas; ends with the ``with`` block.

    Parameters
    ----------
    folder : Path
        Folder of the environments of ``bench.environments``.
    replica_counts : sequence of int
    sizes : Sizes
    records : Path
        The file to read.

    Raises
    ------
    FileNotFoundError
        If an environment is missing.
    """

    def __init__(self, folder: Path, replica_counts: Sequence[int], sizes: Sizes, records: Path) -> None:
        missing = missing_environments(folder, [environment for environment, _ in PEERS.values()])
        if missing:
            raise FileNotFoundError(
                f"no environment for {', '.join(missing)} below {folder}. Make it with: python -m bench.environments "
                f"{' '.join(missing)} --into {folder}; or leave --environments out to measure ringlet and NumPy alone"
            )
        self._folder = folder
        self._counts = replica_counts
        self._settings = {
            "BENCH_ROWS": str(sizes.rows), "BENCH_COLUMNS": str(sizes.columns), "BENCH_BATCH": str(sizes.batch),
            "BENCH_RECORDS": str(records), "BENCH_RECORD_COUNT": str(sizes.records),
        }  # fmt: skip
        self._processes: dict[tuple[str, int], PeerProcess] = {}
        self._stack = ExitStack()

    def __enter__(self) -> DatasetPeers:
        with ExitStack() as stack:
            for peer, (environment, script) in PEERS.items():
                command = [str(python_of(self._folder, environment)), str(ROOT / "bench" / "peers" / script)]
                for count in self._counts:
                    process = PeerProcess(command, count, self._settings)
                    stack.callback(process.stop)
                    self._processes[peer, count] = process
            for process in self._processes.values():
                process.wait_until_ready(_START_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def subjects(self, asked: Mapping[str, Question], region_seconds: float) -> dict[str, Callable[[], float]]:
        """Return the measurements by :func:`peer_title`; a wrong or late answer raises PeerFailure."""
        found: dict[str, Callable[[], float]] = {}
        for (peer, count), process in self._processes.items():
            for name, variants in process.variants.items():
                title = name if name == RECORDS else f"{name} P={count}"
                if title in asked and not (name == RECORDS and count != self._counts[0]):
                    for variant in variants:
                        subject = _asking(process, name, variant, region_seconds, asked[title].calls_per_unit)
                        found[peer_title(peer, variant, title)] = subject
        return found

    def cpu_seconds(self) -> float:
        """CPU time of all processes, in seconds."""
        return sum(process.cpu_seconds() for process in self._processes.values())


def _asking(
    process: PeerProcess, question: str, variant: str, region_seconds: float, units: int
) -> Callable[[], float]:
    told = {"question": question, "variant": variant, "size_bytes": 0, "dtype": "float32", "seconds": region_seconds}
    return lambda: process.ask(told, _ANSWER_SECONDS) / units
