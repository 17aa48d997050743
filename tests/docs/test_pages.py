"""Form of the manual: links to and from the index, lists of sections, the terms of the glossary, and prose."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "index.md"
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path != INDEX and path.name[:2] not in ("00", "01")]
# Outputs of programs, which are not edited.
OUTPUTS = {path.name for path in (ROOT / "docs" / "benchmarks").glob("*.md")} - {"README.md"}
WRITTEN = [INDEX, *(path for path in PAGES if path.parent.name != "benchmarks" or path.name not in OUTPUTS)]
NOT_IN_DOCS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md"]
PROSE = [*(ROOT / name for name in NOT_IN_DOCS), *WRITTEN]
THREE_SCREENS = 120
TERMS = ["replica", "rank", "worker", "task", "chief", "device", "logical device", "core", "chip", "host", "slice"]
TERMS += ["topology", "tile", "shard", "chunk", "step"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose_of(path: Path) -> str:
    """Return the text of a page without programs, outputs and inline code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "``", text)


def anchors_of(path: Path) -> list[str]:
    """Return the anchors of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_links_to_the_index_and_can_be_reached_from_it(page):
    assert f"]({os.path.relpath(INDEX, page.parent)})" in page.read_text(encoding="utf-8")
    reached, waiting = {INDEX}, [INDEX]
    while waiting:
        source = waiting.pop()
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", source.read_text(encoding="utf-8")):
            found = (source.parent / target).resolve()
            if found in PAGES and found not in reached:
                reached.add(found)
                waiting.append(found)
    assert page in reached


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_a_page_of_more_than_three_screens_lists_its_sections(page):
    text = page.read_text(encoding="utf-8")
    if text.count("\n") > THREE_SCREENS:
        sections = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.MULTILINE)
        assert [section for section in sections if f"- [{section}](#" not in text] == []


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_a_link_to_a_section_finds_it(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors_of((page.parent / target).resolve() if target else page), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_programs_and_processes_are_not_called_persons(page):
    odd = r"\b(?:who|whoever|whom|nobody|somebody|anybody|everybody|as ever|now and then)\b"
    text = re.sub(r"people who", "", prose_of(page), flags=re.IGNORECASE)
    assert re.findall(rf"^.*{odd}.*$", text, re.IGNORECASE | re.MULTILINE) == []


def test_the_glossary_defines_each_term_once():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([a-z ]+) \| ", glossary, re.MULTILINE) == ["term", *TERMS]


def test_the_security_policy_names_files_that_exist():
    named = re.findall(r"`((?:cpp|[a-z]+)/[\w/.]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 15
    folders = [ROOT, ROOT / "python" / "ringlet"]
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


def test_readme_is_short_and_names_files_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= THREE_SCREENS
    named = re.findall(r"`((?:docs|examples|bench)/[\w/.]*|[A-Z]+\.md)`", text)
    assert len(named) > 8
    assert re.findall(r"\]\((?!https?:)", text) == [], "shown elsewhere, a relative link leads nowhere: name the path"
    assert [name for name in named if not (ROOT / name).exists()] == []
