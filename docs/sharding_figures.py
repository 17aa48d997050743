"""Figures of `sharding.md`, drawn by the library: ``python -m docs.sharding_figures`` rewrites them."""

from __future__ import annotations

from pathlib import Path

from ringlet.sharding import Mesh, visualize

FOLDER = Path(__file__).resolve().parent / "figures" / "sharding"


def figures() -> dict[str, str]:
    """Return each figure by the name of its file."""
    mesh = Mesh({"x": 4, "y": 2})
    images = visualize(mesh.sharding(None, "x", "y", None), (16, 226, 226, 3))
    return {
        "both_axes.svg": visualize(mesh.sharding("x", "y"), (8, 6)).svg(),
        "one_axis.svg": visualize(mesh.sharding("x"), (8, 6)).svg(),
        "partial.svg": visualize(mesh.sharding("x", unreduced=["y"]), (8, 6)).svg(),
        "images.svg": images.svg(),
    }


def main() -> None:
    """Write the figures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in figures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
