"""Table of `porting.md`, from `tests/conformance/symbols.json`: ``python -m docs.porting`` rewrites it.

Each row of the JSON file is a public name of TensorFlow 2.21 with its signature, what there is of it under
``ringlet.compat.tf`` ("same", "differs" or "absent"), and words about it. `found` looks at what is there, so that no
row can say anything else.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringlet.compat import tf
from ringlet.compat.tensorflow.names import TENSORFLOW_NAMES

ROOT = Path(__file__).resolve().parents[1]
SYMBOLS = ROOT / "tests" / "conformance" / "symbols.json"
DOCUMENT = ROOT / "docs" / "porting.md"
BEGIN, END = "<!-- table: python -m docs.porting -->", "<!-- end of the table -->"

Row = dict[str, str]


def sections() -> dict[str, list[Row]]:
    """Return the rows of each section: ``symbol``, ``signature``, ``status`` and ``words``."""
    read: dict[str, list[Row]] = json.loads(SYMBOLS.read_text(encoding="utf-8"))["sections"]
    return read


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for group in sections().values():
        yield from group


def resolve(symbol: str) -> Any:
    """Return the object of a name such as ``tf.distribute.Strategy.run``; AttributeError if it does not exist.

    Members of classes come as they stand in the class: a property is not asked for its value.
    """
    found: Any = tf
    for name in symbol.split(".")[1:]:
        found = inspect.getattr_static(found, name) if inspect.isclass(found) else getattr(found, name)
    return found


def found(row: Row) -> str:
    """Return "absent", "present", or how the object differs from the signature."""
    try:
        value = resolve(row["symbol"])
    except AttributeError:
        return "absent"
    signature = row["signature"]
    if signature.startswith("enum: "):
        return _compare_members(value, signature.removeprefix("enum: "))
    if signature.startswith("property"):
        is_attribute = isinstance(value, property) or not callable(getattr(value, "__func__", value))
        is_member = inspect.ismemberdescriptor(value) or inspect.isdatadescriptor(value)
        return "present" if is_attribute or is_member else "a method, where TensorFlow has a property"
    if signature == "value":
        return "present"
    if signature == "class":
        return "present" if inspect.isclass(value) else "no class"
    return _compare_parameters(value, signature)


def _compare_members(value: Any, members: str) -> str:
    wanted = dict(re.findall(r"(\w+)=([^,]+)", members))
    if not (inspect.isclass(value) and issubclass(value, enum.Enum)):
        return "no enumeration"
    mine = {member.name: repr(member.value) for member in value}
    return "present" if mine == wanted else f"members {mine}"


def _compare_parameters(value: Any, signature: str) -> str:
    mine = list(inspect.signature(getattr(value, "__func__", value)).parameters.values())
    mine = [p for p in mine if p.name not in ("self", "cls", "_cls")]
    wanted = parameter_names(signature)
    given = [p.name for p in mine if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if given[: len(wanted)] == wanted and all(_is_optional(p) for p in mine[len(wanted) :]):
        return "present"
    takes_any = {p.kind for p in mine} >= {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return "present" if takes_any and wanted == [] else f"takes {', '.join(map(str, mine)) or 'nothing'}"


def _is_optional(parameter: inspect.Parameter) -> bool:
    is_rest = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return is_rest or parameter.default is not parameter.empty


def parameter_names(signature: str) -> list[str]:
    """Return the names of the parameters in the text of a signature, without ``self`` and ``*args``.

    >>> parameter_names("(self, fn, args=(), kwargs=None, mode=<Mode.A: 'A'>) -> int")
    ['fn', 'args', 'kwargs', 'mode']
    """
    signature = re.sub(r"'[^']*'", "''", signature)  # a default may be a comma
    depth, names, current = 0, [], ""
    for character in signature[1:]:
        depth += (character in "([{<") - (character in ")]}>")
        if depth < 0 or (character == "," and depth == 0):
            names.append(re.split(r"[=:]", current)[0].strip())
            current = ""
            if depth < 0:
                break
        else:
            current += character
    return [name for name in names if name and name not in ("self", "cls", "_cls") and not name.startswith("*")]


def table() -> str:
    """Return the table as Markdown: a line of counts, then one part per section."""
    counts = {status: sum(row["status"] == status for row in rows()) for status in ("same", "differs", "absent")}
    total = sum(counts.values())
    same, differs, absent = counts.values()
    lines = [f"Of {total} names, {same} are the same, {differs} differ, and {absent} are absent."]
    for title, group in sections().items():
        lines += ["", f"### {title}", "", "| name | here | |", "| --- | --- | --- |"]
        lines += [f"| `{row['symbol']}` | {row['status']} | {row['words']} |" for row in group]
    lines += ["", "### All absent names, by namespace", ""]
    for path in TENSORFLOW_NAMES:
        absent = absent_names(path)
        lines += [f"- `{path}`: {', '.join(f'`{name}`' for name in absent)}"] if absent else []
    return "\n".join(lines)


def absent_names(path: str) -> list[str]:
    """Return the public names of one of TensorFlow's namespaces that do not exist here; none if it does not itself."""
    try:
        namespace = resolve(path)
    except AttributeError:
        return []
    return sorted(name for name in TENSORFLOW_NAMES[path] if not hasattr(namespace, name))


def with_table(document: str) -> str:
    """Return a document with the current table."""
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
