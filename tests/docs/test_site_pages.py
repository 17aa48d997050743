"""Pages that the site has beside those of docs/: the reference, and copies of files that pages link to."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import pytest

from tests.frameworks.libraries import library
from tests.test_package import MODULES


@pytest.fixture(scope="module")
def site() -> Any:
    """The module docs/site_pages.py."""
    library("griffe")
    library("mkdocs")
    return importlib.import_module("docs.site_pages")


def test_the_reference_has_every_public_name_on_the_page_of_its_module_and_in_the_index(site):
    pages = site.reference()
    modules = {name: module for name, module in MODULES.items() if name.startswith("ringlet")}
    for path, module in modules.items():
        if path.startswith("ringlet.compat"):
            continue
        names = [n for n in dir(module) if n[0] != "_" and not inspect.ismodule(getattr(module, n))]
        page = pages[f"reference/{path}.md"]
        entries = re.findall(r"^(?:      heading:|##) (\S+)", page, re.MULTILINE)
        assert entries == [f"{path}.{name}" for name in names], path
        index = pages["reference/index.md"].split(f"## [{path}]")[1].split("\n## ")[0]
        assert re.findall(r"^\| \[(\w+)\]", index, re.MULTILINE) == names, path


def test_a_method_that_a_class_takes_from_another_module_is_in_the_index(site):
    index = site.reference()["reference/index.md"]
    assert "[batch](ringlet.data.md#ringlet.data.Dataset.batch)" in index
    assert "[all_reduce](ringlet.md#ringlet.ReplicaContext.all_reduce)" in index
    assert "ringlet.MirroredStrategy.run)" not in index, "Strategy has it"


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("clusters.md", "../examples/digits.py", "source/examples/digits.py.md"),
        ("benchmarks/README.md", "../../bench/README.md", "../source/bench/README.md"),
        ("source/CONTRIBUTING.md", "docs/glossary.md", "../glossary.md"),
        ("source/bench/README.md", "all_reduce.py", "all_reduce.py.md"),
        ("guide.md", "datasets.md", "datasets.md"),
        ("guide.md", "https://numpy.org", "https://numpy.org"),
    ],
)
def test_a_link_out_of_the_manual_leads_to_a_copy_on_the_site(site, page, link, shown):
    assert site.rewritten(f"see [it]({link}#part)", page) == f"see [it]({shown}#part)"


def test_a_file_is_on_the_site_once_a_page_links_to_it(site):
    pages = site.linked_files()
    assert pages["source/examples/digits.py.md"].startswith("# examples/digits.py\n\n````py\n")
    assert {"source/SECURITY.md", "source/CHANGELOG.md", "source/CONTRIBUTING.md"} <= pages.keys()
    assert not any(name.startswith("source/docs") for name in pages)
