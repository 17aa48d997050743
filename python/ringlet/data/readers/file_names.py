"""Names of files, as users pass them and as a node gives them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from ringlet.data.graph.node import Node
from ringlet.data.graph.table import ArrayColumn, Table
from ringlet.data.operations.table_source import TableSource
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import flatten

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["FileNames", "name_list", "names_node", "text_name"]

Name = str | bytes | os.PathLike[str]
FileNames = Union[Name, Sequence[Name], np.ndarray[Any, Any], "Dataset"]
"""One name, several, or a dataset of names."""


def names_node(filenames: FileNames) -> Node:
    """Give the node whose elements are these names.

    Raises
    ------
    TypeError
        If they are no names, or a dataset of something else.

    Examples
    --------
    >>> names_node(["a", "b"]).cardinality
    2
    """
    node = getattr(filenames, "node", None)
    if isinstance(node, Node):
        _check_spec(node)
        return node
    names = name_list(filenames)
    array = np.empty(len(names), object)
    array[:] = names
    return TableSource(Table((ArrayColumn(array),), flatten("")[1], len(names)))


def name_list(filenames: Any) -> list[str]:
    """Give names that are no dataset as a list, arrays of any shape in their order.

    Raises
    ------
    TypeError
        If one of them is no name.

    Examples
    --------
    >>> name_list("a"), name_list(["a", b"b"])
    (['a'], ['a', 'b'])
    """
    if isinstance(filenames, (str, bytes, os.PathLike)):
        return [text_name(filenames)]
    if isinstance(filenames, np.ndarray):
        return [text_name(name) for name in filenames.ravel().tolist()]
    if not isinstance(filenames, Sequence):
        raise _no_names(repr(filenames))
    return [name for item in filenames for name in name_list(item)]


def text_name(name: Any) -> str:
    """Give one name as text.

    Raises
    ------
    TypeError
        If it is no name.

    Examples
    --------
    >>> from pathlib import Path
    >>> text_name(Path("folder") / "file")
    'folder/file'
    """
    if isinstance(name, np.ndarray) and name.ndim == 0:
        name = name.item()
    if isinstance(name, (str, bytes, os.PathLike)):
        return str(os.fsdecode(name))
    raise _no_names(repr(name))


def _check_spec(node: Node) -> None:
    if node.runs_user_code:
        return  # its elements are looked at as they come: an example would call functions of the user
    spec = node.element_spec
    is_name = isinstance(spec, TensorSpec) and spec.dtype.kind in "OUS" and not spec.shape
    if not is_name:
        raise _no_names(f"a dataset whose elements are {spec}")


def _no_names(found: str) -> TypeError:
    return TypeError(
        f"`filenames` are text, paths, sequences of them or a dataset with one name in each element, got {found}"
    )
