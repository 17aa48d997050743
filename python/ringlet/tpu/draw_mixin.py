"""Mixin with the drawing methods of slices, assignments and costs; the drawing code is imported on first use."""

from __future__ import annotations

import os
from typing import Any, cast


class Drawable:
    """Base class of objects that can be drawn: slices, assignments, and costs with the loads of their links."""

    def draw(self, file: Any = None, **options: Any) -> None:
        """Print the slice as text: chips, hosts and wrap links, an assignment's rings, and a cost's link loads.

        Parameters
        ----------
        file : text file, str or path, optional
            A name that ends in ``.svg``, or in ``.png`` with matplotlib: the picture is written to that file instead.
        **options
            As for ``ringlet.tpu.drawing.draw``: ``loads``, ``rings`` (of an assignment), ``slices``, ``width``,
            ``color`` (not for a picture).

        Raises
        ------
        ValueError
            If the name has a different extension.
        """
        from pathlib import Path

        from ringlet.tpu import drawing

        if not isinstance(file, str | os.PathLike):
            drawing.draw(cast(Any, self), file=file, **options)
        elif (name := os.fspath(file).lower()).endswith(".png"):
            self.plot(**options).figure.savefig(file)
        elif name.endswith(".svg"):
            Path(file).write_text(drawing.svg(cast(Any, self), **options), encoding="utf-8")
        else:
            raise ValueError(f"{file!r} is neither SVG nor PNG: write draw('slice.svg') or draw('slice.png')")

    def plot(self, **options: Any) -> Any:
        """Draw the slice with matplotlib.

        Parameters
        ----------
        **options
            As for ``ringlet.tpu.drawing.plot``: ``loads``, ``rings`` (of an assignment), ``slices``, ``axes``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ringlet.tpu import drawing

        return drawing.plot(cast(Any, self), **options)

    def _repr_svg_(self) -> str:
        from ringlet.tpu import drawing

        return drawing.svg(cast(Any, self))

    def _repr_html_(self) -> str:
        from ringlet.tpu import drawing

        return drawing.html(cast(Any, self))
