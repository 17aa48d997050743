"""The layers of the tree as data, and the test that every ``#include`` and ``import`` keeps to them.

A file imports from its own folder and from smaller numbers: never sideways, never up. Imports inside functions and
under ``if TYPE_CHECKING`` count like any other, because they couple files in the same way.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Folder below cpp/ringlet (or below cpp, for the last two): its layer.
CPP_LAYERS = {
    "core": 1,
    "sync": 2,
    "memory": 2,
    "kernels": 2,
    "tiling": 2,
    "io": 2,
    "record": 3,
    "tables": 3,
    "collectives": 4,
    "bindings": 5,
    "tests": 6,  # stress programs and benchmarks see everything but the extension
}

# Folder or module below python/ringlet: its layer. "__init__" is the name `ringlet` itself.
PYTHON_LAYERS = {
    "module_names": -1,
    "version": -1,
    "variable_names": 0,
    "_core": 0,
    "errors": 0,
    "tf_function": 0,
    "input_replication_mode": 0,
    "pytree_nodes": 0,
    "cancellation": 1,
    "nest": 1,
    "devices": 1,
    "context": 1,
    "protobuf_wire": 1,
    "observe": 2,
    "ipc": 2,
    "tpu": 2,
    "rendezvous": 3,
    "cluster": 4,
    "cluster_resolver": 5,
    "collectives": 5,
    "values": 6,
    "sharding": 7,
    "data": 7,
    "strategy": 8,
    "coordinator": 9,
    "train": 9,
    "rank_zero": 9,
    "experimental": 10,
    "config": 9,
    "launcher": 10,
    "compat": 11,
    "testing": 10,
    "checks": 10,
    "torch": 10,
    "ray": 10,
    "__init__": 12,
    "__main__": 12,
}

# Folder or module below python/ringlet/tpu: its layer. The methods `draw` and `plot` load drawings when called.
TPU_LAYERS = {"units": 0, "draw_mixin": 0, "topology": 1, "cost": 2, "assignment": 3, "drawing": 4, "__init__": 5}
TPU_UPWARD = {("draw_mixin", "__init__")}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# The C++ standard library's own headers have neither a folder nor a suffix; nothing else may enter the core.
STANDARD_HEADER = re.compile(r"^[a-z_0-9]+$")


@dataclass(frozen=True)
class Violation:
    """A line that breaks a rule of the table."""

    file: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def points_down(layers: dict[str, int], source: str, target: str) -> str | None:
    """The rule that `source` breaks by using `target`, or None."""
    for unit in (source, target):
        if unit not in layers:
            return f"{unit!r} has no layer: give it one in the tables of tests/test_layering.py"
    if source == target or layers[target] < layers[source]:
        return None
    way = "sideways" if layers[target] == layers[source] else "up"
    return f"{source} (layer {layers[source]}) uses {target} (layer {layers[target]}): never {way}, only down"


# --- C++ ------------------------------------------------------------------------------------------------------------


def cpp_unit(path: Path) -> str:
    """The row of CPP_LAYERS for a file, given relative to the root of the project."""
    if path.parts[0] in ("tests", "bench"):
        return "tests"
    return path.parts[1] if path.parts[1] != "ringlet" else path.parts[2]


def broken_include(unit: str, header: str) -> str | None:
    """The rule that a file of `unit` breaks by including `header`, or None."""
    folder, *rest = header.split("/")
    if folder in ("ringlet", "bindings") and rest:
        return points_down(CPP_LAYERS, unit, rest[0] if folder == "ringlet" else folder)
    if folder in CPP_LAYERS and rest:
        return f'an #include names its layer from the include root cpp/: write "ringlet/{header}"'
    if folder in ("pybind11", "Python.h") and unit != "bindings":
        return f"{unit} includes {header}: only bindings sees Python"
    if unit == "core" and not STANDARD_HEADER.match(header):
        return f"core includes {header}: core uses the standard library only"
    if header == "atomic" and unit not in ("sync", "tests"):
        return f"{unit} includes <atomic>: every atomic lives in sync"
    return None


def cpp_violations(root: Path) -> Iterator[Violation]:
    """Every line of C++ that breaks a rule, in the order of files and lines."""
    for path in sorted(p for top in ("cpp", "tests", "bench") for p in (root / top).rglob("*.[chi]pp")):
        name = path.relative_to(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            rule = broken_include(cpp_unit(name), match.group(1)) if match else None
            if rule:
                yield Violation(str(name), number, rule)


# --- Python ---------------------------------------------------------------------------------------------------------


def python_unit(module: tuple[str, ...]) -> str:
    """The row of PYTHON_LAYERS for a dotted name that starts with ``ringlet``."""
    return module[1] if len(module) > 1 else "__init__"


def dotted_name(path: Path) -> tuple[str, ...]:
    """The dotted name of a file, given relative to python/, ``__init__`` left out."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def from_targets(node: ast.ImportFrom, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The dotted names that ``from X import a, b`` loads, inside `package`."""
    base = package[: len(package) - node.level + 1] if node.level else ()
    base += tuple(node.module.split(".")) if node.module else ()
    # `from ringlet import x` is the module x where there is one, and a public name of ringlet itself otherwise.
    if base == ("ringlet",):
        yield from ((*base, a.name) if a.name in PYTHON_LAYERS else base for a in node.names)
    else:
        yield base


def imported_names(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted name of every import in a file, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, target) for target in from_targets(node, package))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            literal = node.args[0] if node.args else None
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                yield node.lineno, tuple(literal.value.split("."))


def python_violations(root: Path) -> Iterator[Violation]:
    """Every import that breaks a rule, in the order of files and lines."""
    source = root / "python"
    for path in sorted((*source.rglob("*.py"), *source.rglob("*.pyi"))):
        module = dotted_name(path.relative_to(source))
        package = module if path.stem == "__init__" else module[:-1]
        found = imported_names(ast.parse(path.read_text(encoding="utf-8")), package)
        for line, target in sorted(found):
            if target[0] == "ringlet":
                rule = points_down(PYTHON_LAYERS, python_unit(module), python_unit(target))
                if rule:
                    yield Violation(str(path.relative_to(root)), line, rule)


def test_every_import_within_tpu_points_down():
    for path in sorted((ROOT / "python" / "ringlet" / "tpu").rglob("*.py")):
        module = dotted_name(path.relative_to(ROOT / "python"))
        package = module if path.stem == "__init__" else module[:-1]
        for line, target in imported_names(ast.parse(path.read_text(encoding="utf-8")), package):
            if target[:2] == ("ringlet", "tpu"):
                units = [name[2] if len(name) > 2 else "__init__" for name in (module, target)]
                rule = None if tuple(units) in TPU_UPWARD else points_down(TPU_LAYERS, *units)
                assert rule is None, f"{path}:{line}: {rule}"


def test_operations_of_datasets_do_not_use_their_distribution():
    for path in sorted((ROOT / "python" / "ringlet" / "data" / "operations").rglob("*.py")):
        for line, target in imported_names(ast.parse(path.read_text(encoding="utf-8")), ()):
            assert target[:3] != ("ringlet", "data", "distribution"), f"{path}:{line}"


# --- The tree -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("violations", [cpp_violations, python_violations])
def test_every_include_and_import_points_down(violations):
    first = next(violations(ROOT), None)
    assert first is None, str(first)


def test_every_folder_of_the_tree_has_a_layer():
    cpp = {p.name for p in (ROOT / "cpp" / "ringlet").iterdir() if p.is_dir()}
    assert cpp <= CPP_LAYERS.keys(), "a folder below cpp/ringlet is missing from CPP_LAYERS"
    package = ROOT / "python" / "ringlet"
    units = {p.stem for p in package.iterdir() if p.suffix in (".py", ".pyi") or (p.is_dir() and any(p.rglob("*.py")))}
    assert units <= PYTHON_LAYERS.keys(), "a module below python/ringlet is missing from PYTHON_LAYERS"


def test_the_picture_of_the_layers_shows_each_in_its_place():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"^python/ringlet/ +12.*?^```", text, re.MULTILINE | re.DOTALL)
    assert picture is not None
    for shown, layers in zip(picture.group().split("\ncpp/", 1), (PYTHON_LAYERS, CPP_LAYERS), strict=True):
        rows = re.findall(r" (-?\d+)  ((?:\w+ ?)+)(?:  |$)", shown, re.MULTILINE)
        assert {unit: int(layer) for layer, units in rows for unit in units.split()} == {
            unit: layer for unit, layer in layers.items() if unit != "tests"
        }


# A folder of this many source files can be held in one look; folders with one file an item may have more.
MOST_FILES = 25
ONE_FILE_AN_ITEM = {"python/ringlet/data/operations"}
# Base names that stand in several packages on purpose: TensorFlow's names are spelled where TensorFlow has them.
SHARED_NAMES_BELOW = ("compat", "data.operations")


def source_files(root: Path) -> Iterator[Path]:
    """Every Python file of the package and every C++ file of the core, relative to the root of the project."""
    for top, pattern in (("python/ringlet", "*.py"), ("cpp/ringlet", "*.[ch]pp")):
        yield from (path.relative_to(root) for path in sorted((root / top).rglob(pattern)))


def test_no_folder_holds_more_files_than_a_reader_can():
    sizes = Counter(str(path.parent) for path in source_files(ROOT))
    assert {f: n for f, n in sizes.items() if n > MOST_FILES and f not in ONE_FILE_AN_ITEM} == {}


def test_no_two_modules_of_different_packages_share_a_base_name():
    places: dict[str, list[str]] = {}
    for path in (ROOT / "python" / "ringlet").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT / "python" / "ringlet").with_suffix("").parts)
        if path.stem not in ("__init__", "__main__") and not name.startswith(SHARED_NAMES_BELOW):
            places.setdefault(path.stem, []).append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def plant(root: Path, file: str, text: str) -> Path:
    """Write one file of a made-up tree."""
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("file", "text", "line", "rule"),
    [
        # file, text, line at fault, words of the rule
        ("ringlet/values/a.py", "import os\nimport ringlet.strategy\n", 2, "never up"),
        ("ringlet/data/a.py", "from ringlet.sharding import tile_views\n", 1, "never sideways"),
        ("ringlet/nest.py", "from ringlet import devices\n", 1, "never sideways"),
        ("ringlet/nest.py", "from . import devices\n", 1, "never sideways"),
        ("ringlet/data/a.py", "from ..strategy.base import Strategy\n", 1, "never up"),
        ("ringlet/data/a.py", "def f():\n    from ringlet.strategy import Strategy\n", 2, "never up"),
        ("ringlet/data/a.py", "if TYPE_CHECKING:\n    from ringlet.strategy import S\n", 2, "never up"),
        ("ringlet/data/a.py", "import importlib\nimportlib.import_module('ringlet.strategy')\n", 2, "never up"),
        ("ringlet/data/a.py", "import ringlet\n", 1, "uses __init__"),
        ("ringlet/data/a.py", "from ringlet import MirroredStrategy\n", 1, "uses __init__"),
        ("ringlet/data/a.py", "from .. import get_strategy\n", 1, "uses __init__"),
        ("ringlet/data/__init__.pyi", "from ..strategy import base\n", 1, "never up"),
        ("ringlet/errors/files.py", "import ringlet.nest\n", 1, "never up"),
        ("ringlet/novel/a.py", "import ringlet.nest\n", 1, "'novel' has no layer"),
        ("ringlet/data/a.py", "import ringlet.novel\n", 1, "'novel' has no layer"),
    ],
)
def test_a_python_import_that_breaks_the_table_is_named_with_file_and_line(tmp_path, file, text, line, rule):
    found = list(python_violations(plant(tmp_path, f"python/{file}", text)))
    assert [(v.file, v.line) for v in found] == [(f"python/{file}", line)]
    assert rule in found[0].rule


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ringlet/data/a.py", "from ringlet.data import b\nfrom . import b\nfrom .b import c\n"),
        ("ringlet/strategy/a.py", "from ringlet import errors, context\nfrom ..values import base\n"),
        ("ringlet/collectives/__init__.py", "from ringlet import _core\nfrom .group import Group\n"),
        ("ringlet/__init__.pyi", "from ringlet.strategy import Strategy\nfrom . import data\n"),
    ],
)
def test_imports_from_the_own_folder_and_from_below_are_allowed(tmp_path, file, text):
    assert list(python_violations(plant(tmp_path, f"python/{file}", text))) == []


@pytest.mark.parametrize(
    ("file", "text", "line", "rule"),
    [
        # file, text, line at fault, words of the rule
        ("cpp/ringlet/core/a.hpp", '#pragma once\n#include "ringlet/sync/slot.hpp"\n', 2, "never up"),
        ("cpp/ringlet/kernels/a.cpp", '#  include "ringlet/tiling/plan.hpp"\n', 1, "never sideways"),
        ("cpp/ringlet/kernels/a.cpp", "#include <ringlet/collectives/ring.hpp>\n", 1, "never up"),
        ("cpp/ringlet/collectives/a.cpp", '#include "core/dtype.hpp"\n', 1, 'write "ringlet/core/dtype.hpp"'),
        ("cpp/ringlet/collectives/a.cpp", "#include <pybind11/pybind11.h>\n", 1, "only bindings"),
        ("cpp/ringlet/sync/a.hpp", "#include <Python.h>\n", 1, "only bindings"),
        ("cpp/ringlet/core/a.hpp", "#include <sys/mman.h>\n", 1, "standard library only"),
        ("cpp/ringlet/collectives/a.hpp", "#include <atomic>\n", 1, "every atomic lives in sync"),
        ("tests/cpp/a.cpp", '#include "bindings/module.hpp"\n#include <pybind11/numpy.h>\n', 2, "only bindings"),
        ("cpp/ringlet/novel/a.hpp", '#include "ringlet/core/dtype.hpp"\n', 1, "'novel' has no layer"),
    ],
)
def test_an_include_that_breaks_the_table_is_named_with_file_and_line(tmp_path, file, text, line, rule):
    found = list(cpp_violations(plant(tmp_path, file, text)))
    assert [(v.file, v.line) for v in found] == [(file, line)]
    assert rule in found[0].rule


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "cpp/ringlet/collectives/ring.cpp",
            '#include "ringlet/collectives/ring.hpp"\n#include "ringlet/io/crc.hpp"\n',
        ),
        ("cpp/ringlet/sync/a.hpp", "#include <atomic>\n#include <linux/futex.h>\n"),
        (
            "cpp/bindings/a.cpp",
            '#include <pybind11/numpy.h>\n#include "bindings/a.hpp"\n#include "ringlet/core/b.hpp"\n',
        ),
        ("tests/cpp/stress.cpp", '#include "ringlet/collectives/group.hpp"\n#include <atomic>\n'),
    ],
)
def test_includes_from_the_own_folder_and_from_below_are_allowed(tmp_path, file, text):
    assert list(cpp_violations(plant(tmp_path, file, text))) == []
