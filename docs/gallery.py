"""The page of the examples: ``python -m docs.gallery`` rewrites `docs/examples.md` from their docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "examples.md"
# The programs in the order of the page, each with its figure and what that shows.
FIGURES = {
    "bootstrap.py": ("", ""),
    "training_loop.py": ("images/all_reduce.svg", "All-reduce: every rank gets the sum of all ranks"),
    "digits.py": ("figures/examples/digits.svg", "Training loss and test accuracy after each of 40 epochs"),
    "resume_training.py": ("", ""),
    "overlap.py": ("", ""),
    "recommender.py": ("", ""),
    "torch_training.py": ("", ""),
    "torch_mlp.py": ("", ""),
    "jax_training.py": ("", ""),
    "heat_equation.py": ("figures/sharding/both_axes.svg", "An array in eight tiles"),
    "spatial_cnn.py": ("figures/sharding/images.svg", "Images that are cut along height and width"),
    "tensor_parallel_transformer.py": ("figures/sharding/partial.svg", "Two summands of the full size"),
    "sharded_algorithms.py": ("", ""),
}
HEAD = """# Examples

Find here a program to start from. Each runs as it stands in a checkout, after `pip install '.[examples]'`; those with
PyTorch or JAX need that library. [pod_on_a_laptop.ipynb](../examples/pod_on_a_laptop.ipynb) is a notebook, and
[all_reduce.cpp](../examples/cpp/all_reduce.cpp) is in C++.

![A pod of 8,960 chips, divided among 140 replicas, from pod_on_a_laptop.ipynb](figures/pod.svg)
"""


def page() -> str:
    """Return the text of the page."""
    contents, sections = "", ""
    for name, (figure, caption) in FIGURES.items():
        text = ast.get_docstring(ast.parse((ROOT / "examples" / name).read_text(encoding="utf-8"))) or ""
        contents += f"- [{name}](#{name.replace('.', '')})\n"
        sections += f"\n## {name}\n\n[examples/{name}](../examples/{name}): {text}\n"
        sections += f"\n![{caption}]({figure})\n" if figure else ""
    return f"{HEAD}\n{contents}{sections}\n[Back to the index](index.md)\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
