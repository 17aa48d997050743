"""Conversion of the user's file names to nodes, lists and text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.node import Node
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import ArrayColumn, Table
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import flatten

Name = str | bytes | os.PathLike[str]
FileNames = Union[Name, Sequence[Name], np.ndarray[Any, Any], "Dataset"]
"""One name, several names, or a dataset of names."""


def names_node(filenames: FileNames) -> Node:
    """Return the node whose elements are file names."""
    node = getattr(filenames, "node", None)
    if isinstance(node, Node):
        _check_spec(node)
        return node
    names = name_list(filenames)
    array = np.empty(len(names), object)
    array[:] = names
    return TableSource(Table((ArrayColumn(array),), flatten("")[1], len(names)))


def name_list(filenames: Any) -> list[str]:
    """Convert names to a flat list, for arguments that are not a dataset of names."""
    if isinstance(filenames, (str, bytes, os.PathLike)):
        return [text_name(filenames)]
    if isinstance(filenames, np.ndarray):
        return [text_name(name) for name in filenames.ravel().tolist()]
    if not isinstance(filenames, Sequence):
        raise _no_names(repr(filenames))
    return [name for item in filenames for name in name_list(item)]


def text_name(name: Any) -> str:
    """Convert one name to text."""
    if isinstance(name, np.ndarray) and name.ndim == 0:
        name = name.item()
    if isinstance(name, (str, bytes, os.PathLike)):
        return str(os.fsdecode(name))
    raise _no_names(repr(name))


def _check_spec(node: Node) -> None:
    if node.runs_user_code:
        return  # checked during iteration, because computing the spec would call user functions
    spec = node.element_spec
    is_name = isinstance(spec, TensorSpec) and spec.dtype.kind in "OUS" and not spec.shape
    if not is_name:
        raise _no_names(f"a dataset whose elements are {spec}")


def _no_names(found: str) -> TypeError:
    return TypeError(
        "`filenames` must be a string, a path, a sequence of these, or a dataset with one name in each element, got "
        f"{found}"
    )
