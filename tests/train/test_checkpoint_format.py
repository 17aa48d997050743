"""The checksum of a file covers its metadata."""

from __future__ import annotations

from ringlet.train.checkpoint_format import checksum_of


def test_the_checksum_covers_every_text_name_dtype_and_shape():
    texts, shapes = {"format": "1", "saved": "2", "checksum": "?"}, {"a": ("F32", [2]), "b": ("I8", [])}
    first = checksum_of(texts, shapes)
    assert checksum_of({**texts, "checksum": "!"}, dict(reversed(shapes.items()))) == first
    others = [
        checksum_of({**texts, "format": "2"}, shapes),
        checksum_of({**texts, "more": ""}, shapes),
        checksum_of(texts, {**shapes, "a": ("F32", [3])}),
        checksum_of(texts, {**shapes, "a": ("I32", [2])}),
        checksum_of(texts, {"a": shapes["a"], "c": shapes["b"]}),
    ]
    assert len({first, *others}) == 6
