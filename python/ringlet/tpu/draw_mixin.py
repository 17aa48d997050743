"""How slices and assignments show themselves; the drawing itself is loaded when it is asked for."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["Pictured"]


class Pictured:
    """What :class:`Topology` and :class:`DeviceAssignment` share: pictures of themselves."""

    def draw(self, **options: Any) -> None:
        """Print the slice in characters: chips, hosts and wraps, and replicas and rings of an assignment.

        Parameters
        ----------
        **options
            Those of ``ringlet.tpu.drawing.draw``: ``loads``, ``rings`` (of an assignment), ``slices``, ``width``,
            ``color``, ``file``.
        """
        from ringlet.tpu import drawing

        drawing.draw(cast(Any, self), **options)

    def plot(self, **options: Any) -> Any:
        """Draw the slice with matplotlib.

        Parameters
        ----------
        **options
            Those of ``ringlet.tpu.drawing.plot``: ``loads``, ``rings`` (of an assignment), ``slices``, ``axes``.

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
