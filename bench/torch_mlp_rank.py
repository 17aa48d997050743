"""One process of :mod:`bench.torch_mlp`: trains on request, and returns the seconds.

Questions and answers are lines of JSON: ``{"steps": 5}`` trains, and is answered with the seconds; with ``"save":
path`` the answer has a digest of the parameters too, and the first process writes them to that file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["main"]


def _trainer(options: argparse.Namespace) -> Any:
    """Return the trainer of the example, or the same without any exchange, as an upper bound of the speed."""
    import torch

    from examples import torch_mlp

    torch.set_num_threads(1)
    sizes = torch_mlp.WIDTHS if options.hidden is None else (1024, options.hidden, options.hidden, 10)
    if options.trainer == "gloo":
        return torch_mlp.GlooTrainer(options.batch, sizes, options.bucket)
    if options.trainer == "ringlet":
        return torch_mlp.RingletTrainer(options.batch, sizes)

    class Alone(torch_mlp.RingletTrainer):
        def _step(self, images: Any, labels: Any) -> Any:
            loss = torch.nn.functional.cross_entropy(self.module(images), labels)
            loss.backward()
            self._gradients.use(self._gradients.array)
            self._optimizer.step()
            self._optimizer.zero_grad()
            return loss.detach()

    return Alone(options.batch, sizes)


def _save(trainer: Any, path: str) -> str:
    parameters = np.concatenate([each.detach().numpy().reshape(-1) for each in trainer.module.parameters()])
    if os.environ["RANK"] == "0":
        np.save(path, parameters)
    return hashlib.sha256(parameters.tobytes()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer questions until the end of the input."""
    parser = argparse.ArgumentParser(prog="python -m bench.torch_mlp_rank", description=__doc__)
    parser.add_argument("--trainer", required=True, choices=("ringlet", "gloo", "alone"))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--bucket", type=int, default=25)
    trainer = _trainer(parser.parse_args(arguments))
    done = 0
    for line in sys.stdin:
        question = json.loads(line)
        start = perf_counter()
        for _ in range(question["steps"]):
            trainer.step(done)
            done += 1
        answer: dict[str, Any] = {"seconds": perf_counter() - start}
        if "save" in question:
            answer["digest"] = _save(trainer, question["save"])
        print(json.dumps(answer), flush=True)
    trainer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
