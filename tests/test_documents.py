"""Documents of the tree: their programs print the output shown, links lead to files, and no machine is named."""

from __future__ import annotations

import contextlib
import fnmatch
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.libraries import library

ROOT = Path(__file__).resolve().parents[1]
IGNORED = [".git", *(line.strip("/ ") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Texts that no file may contain: the pattern, the reason, and the files that are exempt.
FORBIDDEN = [
    (r"(?<![\w.}])/(?:root|home|Users|work|opt|mnt)/", "a path of one person's machine", ()),
    (r"pypi\.org|python[h]osted|anaconda\.org|debian\.org", "the address of a package host: name the package", ()),
    (r"\.\./shared|/[s]hared/", "a path outside the project", (".ci/run",)),
]


def files_of_the_tree() -> Iterator[Path]:
    """Yield every file that belongs to the project."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not any(fnmatch.fnmatch(part, pattern) for part in parts for pattern in IGNORED):
            yield path


def text_of(path: Path) -> str:
    """Return the text of a file; empty for a binary file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def forbidden_in(name: str, text: str) -> list[str]:
    """Return the forbidden texts of a file, each with line number and reason."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r} is {reason}"
        for pattern, reason, allowed in FORBIDDEN
        if name not in allowed
        for match in re.finditer(pattern, text)
    ]


def test_no_file_names_a_machine_or_a_package_host_or_a_path_outside_the_project():
    files = {str(path.relative_to(ROOT)): text_of(path) for path in files_of_the_tree()}
    assert {"README.md", "python/ringlet/__init__.py", "CMakeLists.txt"} <= files.keys()
    assert [finding for name, text in files.items() for finding in forbidden_in(name, text)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("see " + "/ho" + "me/me/x", "machine"),
        ("pip from py" + "pi.org", "package host"),
        ("read ../" + "shared/plan.md", "outside the project"),
    ],
)
def test_a_forbidden_word_is_found_with_its_line(text, said):
    (finding,) = forbidden_in("docs/a.md", f"first line\n{text}\n")
    assert finding.startswith("docs/a.md:2:")
    assert said in finding


def section(document: str, title: str) -> str:
    """Return the text below one heading of the second level, up to the next."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", document, re.MULTILINE | re.DOTALL).group(1)


def test_quick_start_holds_one_block_of_two_commands():
    blocks = re.findall(r"^```\w*\n(.*?)^```$", section(text_of(ROOT / "README.md"), "Quick start"), re.M | re.S)
    (block,) = blocks
    main_job, tests = block.splitlines()
    assert "[examples]" in main_job
    assert "examples/bootstrap.py" in main_job
    assert "[test]" in tests
    assert "pytest" in tests


# A ``python`` block of a document, with the ``text`` block after it if there is one, and before it a line that names a
# library without which it cannot run.
SHOWN = re.compile(r"^```python\n(.*?)^```\n(?:\n?^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (\w+) -->\n$")

# Documents whose blocks are one program, of which every output is shown.
CONTINUOUS = [
    ROOT / "docs" / name for name in ("guide.md", "datasets.md", "tpu.md", "sharding.md", "parameter_server.md")
]


def needs_of(block: re.Match[str]) -> str | None:
    """Return the library that a block needs, or None."""
    needs = NEEDS.search(block.string, 0, block.start())
    return None if needs is None else needs.group(1)


def shown_programs() -> list[object]:
    """Return every program of a document in which each block stands alone, and its output if that is shown."""
    return [
        pytest.param(match.group(1), match.group(2), needs_of(match), id=f"{path.relative_to(ROOT)}-{number}")
        for path in DOCUMENTS
        if path not in CONTINUOUS
        for number, match in enumerate(SHOWN.finditer(text_of(path)), 1)
    ]


def printed_by(program: str, names: dict[str, object]) -> str:
    """Run a program, and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "example.py", "exec"), names)
    return printed.getvalue().strip()


@pytest.mark.parametrize(("program", "output", "needs"), shown_programs())
def test_a_program_in_a_document_runs_and_prints_what_is_shown(program, output, needs):
    if needs is not None:
        library(needs)
    printed = printed_by(program, {"__name__": "__main__"})
    assert output is None or printed == output.strip()


@pytest.mark.slow
@pytest.mark.parametrize("document", CONTINUOUS, ids=lambda path: path.name)
def test_a_document_that_is_one_program_prints_everything_that_is_shown_and_nothing_else(document):
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = list(SHOWN.finditer(text_of(document)))
    assert len(blocks) == text_of(document).count("```python") > 10
    for match in blocks:
        assert printed_by(match.group(1), names) == (match.group(2) or "").strip(), match.group(1)


def test_the_blocks_of_the_guide_are_short():
    """Split longer blocks in two, with text between them: readers have to remember a whole block."""
    lengths = [match.group(1).count("\n") for document in CONTINUOUS for match in SHOWN.finditer(text_of(document))]
    assert max(lengths) <= 25


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_to_a_file_leads_somewhere(document):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text_of(document))
    assert [target for target in targets if not (document.parent / target).exists()] == []
