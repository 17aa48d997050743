"""A small language model of Llama's shape in bfloat16, whose layers are divided over the ranks of a group.

Each rank has some attention heads and some units of each feed-forward network, as in Megatron-LM's tensor parallelism,
so that a token costs two all-reduces of `WIDTH` values in each layer. Tokens are generated one at a time, which is the
case that depends most on the time of a small collective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LAYERS", "WIDTH", "Decoder"]

LAYERS, WIDTH, HEADS, FEED_FORWARD, VOCABULARY = 8, 512, 8, 1408, 4096
CONTEXT = 128  # tokens whose keys and values are cached
_HEAD_WIDTH = WIDTH // HEADS


class Decoder:
    """The part of one rank; all ranks have the same embedding."""

    def __init__(self, torch: Any, rank: int, size: int, all_reduce: Callable[[Any], object]) -> None:
        self._torch = torch
        self._all_reduce = all_reduce
        draw = torch.Generator().manual_seed(0)

        def part(rows: int, columns: int, axis: int) -> Any:
            """Draw a matrix, the same on all ranks, and return the part of this rank."""
            whole = (torch.randn(rows, columns, generator=draw) / columns**0.5).to(torch.bfloat16)
            return whole.chunk(size, axis)[rank].contiguous()

        self._embedding = (torch.randn(VOCABULARY, WIDTH, generator=draw) / 16).to(torch.bfloat16)
        self._layers = [
            {
                "query": part(WIDTH, WIDTH, 0),
                "key": part(WIDTH, WIDTH, 0),
                "value": part(WIDTH, WIDTH, 0),
                "output": part(WIDTH, WIDTH, 1),
                "gate": part(FEED_FORWARD, WIDTH, 0),
                "up": part(FEED_FORWARD, WIDTH, 0),
                "down": part(WIDTH, FEED_FORWARD, 1),
            }
            for _ in range(LAYERS)
        ]
        heads = HEADS // size
        self._keys, self._values = (
            [torch.zeros(heads, CONTEXT, _HEAD_WIDTH, dtype=torch.bfloat16) for _ in range(LAYERS)] for _ in range(2)
        )
        frequencies = 10_000.0 ** (-torch.arange(0, _HEAD_WIDTH, 2) / _HEAD_WIDTH)
        angles = torch.arange(CONTEXT)[:, None] * frequencies
        self._rotations = torch.polar(torch.ones_like(angles), angles)
        self.position = 0

    def step(self, token: int) -> int:
        """Return the most probable token after a token at the next position, which wraps around."""
        torch = self._torch
        functional, position = torch.nn.functional, self.position % CONTEXT
        self.position += 1
        with torch.no_grad():
            x = self._embedding[token]
            for number, layer in enumerate(self._layers):
                y = _normalized(x)
                query, key = (self._rotate(layer[name] @ y, position) for name in ("query", "key"))
                keys, values = self._keys[number], self._values[number]
                keys[:, position] = key
                values[:, position] = (layer["value"] @ y).view(-1, _HEAD_WIDTH)
                seen = slice(0, position + 1)
                found = functional.scaled_dot_product_attention(query[:, None], keys[:, seen], values[:, seen])
                x = x + self._summed(layer["output"] @ found.reshape(-1))
                y = _normalized(x)
                x = x + self._summed(layer["down"] @ (functional.silu(layer["gate"] @ y) * (layer["up"] @ y)))
            return int((self._embedding @ _normalized(x)).argmax())

    def _summed(self, partial: Any) -> Any:
        self._all_reduce(partial)
        return partial

    def _rotate(self, flat: Any, position: int) -> Any:
        heads = flat.float().view(-1, _HEAD_WIDTH // 2, 2)
        turned = self._torch.view_as_complex(heads) * self._rotations[position]
        return self._torch.view_as_real(turned).reshape(-1, _HEAD_WIDTH).to(flat.dtype)


def _normalized(x: Any) -> Any:
    """RMSNorm without a weight."""
    wide = x.float()
    return (wide * (wide.square().mean() + 1e-5).rsqrt()).to(x.dtype)
