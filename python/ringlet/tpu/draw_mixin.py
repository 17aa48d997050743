"""Mixin with the drawing methods of slices and assignments; the drawing code is imported on first use."""

from __future__ import annotations

from typing import Any, cast


class Drawable:
    """Base class of objects that can be drawn: slices, assignments, and costs with the loads of their links."""

    def draw(self, **options: Any) -> None:
        """Print the slice as text: chips, hosts and wrap links, an assignment's rings, and a cost's link loads.

        Parameters
        ----------
        **options
            As for ``ringlet.tpu.drawing.draw``: ``loads``, ``rings`` (of an assignment), ``slices``, ``width``,
            ``color``, ``file``.
        """
        from ringlet.tpu import drawing

        drawing.draw(cast(Any, self), **options)

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
