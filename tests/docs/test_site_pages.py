"""Pages that the site has beside those of docs/: the reference, and copies of files that pages link to."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from typing import Any
from unittest import mock

import pytest

import ringlet
from tests.frameworks.libraries import library
from tests.test_package import MODULES


@pytest.fixture(scope="module")
def site() -> Any:
    """The module docs/site_pages.py."""
    library("griffe")
    library("mkdocs")
    return importlib.import_module("docs.site_pages")


def public_modules() -> dict[str, Any]:
    return {
        path: module
        for path, module in MODULES.items()
        if path.startswith("ringlet") and not path.startswith("ringlet.compat")
    }


def test_the_reference_has_every_public_name_on_a_page_and_in_the_index(site):
    pages = site.reference()
    for path, module in public_modules().items():
        names = [n for n in dir(module) if n[0] != "_" and not inspect.ismodule(getattr(module, n))]
        classes = [name for name in names if f"reference/{path}.{name}.md" in pages]
        page = pages[f"reference/{path}.md"]
        entries = re.findall(r"^(?:      heading:|##) (\S+)", page, re.MULTILINE)
        assert entries == [f"{path}.{name}" for name in names if name not in classes], path
        assert re.findall(r"^\| \[(\w+)\]", page, re.MULTILINE) == classes, path
        assert all(f"heading: {path}.{name}\n" in pages[f"reference/{path}.{name}.md"] for name in classes), path
        index = pages["reference/index.md"].split(f"## [{path}]")[1].split("\n## ")[0]
        assert re.findall(r"^\| \[(\w+)\]", index, re.MULTILINE) == names, path


def test_every_error_has_a_page_which_the_navigation_lists(site):
    entries = [entry for entry in site.navigation() if isinstance(entry, dict)]
    [listed] = [entry["ringlet.errors"] for entry in entries if "ringlet.errors" in entry]
    assert listed == [f"reference/ringlet.errors{name}.md" for name in ["", *(f".{n}" for n in dir(ringlet.errors))]]


def test_a_name_of_an_error_links_to_its_page(site):
    page = mock.Mock(url="manual/guide/")
    text = "<code>WorkerLostError</code>, <code>ringlet.errors.NotFoundError</code>, <code>ValueError</code>"
    start = '<a href="../../reference/ringlet.errors.'
    assert site.on_page_content(text, page) == (
        f'{start}WorkerLostError/"><code>WorkerLostError</code></a>, '
        f'{start}NotFoundError/"><code>ringlet.errors.NotFoundError</code></a>, <code>ValueError</code>'
    )
    for linked in ("<a href='x'><code>WorkerLostError</code></a>", "<pre><code>WorkerLostError</code></pre>"):
        assert site.on_page_content(linked, page) == linked


def test_a_long_heading_breaks_after_the_module(site):
    page = mock.Mock(url="")
    heading = '<h1 id="a.B"><code>ringlet.errors.WorkerLostError</code></h1>'
    assert "ringlet.errors.<wbr>WorkerLostError" in site.on_page_content(heading, page)


def test_pages_of_the_manual_that_the_reference_links_to_exist(site):
    made = site.linked_files()
    pages = [page.partition("#")[0] for links in site.MANUAL.values() for page in links]
    assert site.MANUAL.keys() <= public_modules().keys() | {"ringlet.torch", "ringlet.ray"}
    assert [page for page in pages if page not in made and not (site.ROOT / "docs" / page).exists()] == []


def test_a_method_that_a_class_takes_from_another_module_is_in_the_index(site):
    index = site.reference()["reference/index.md"]
    assert "[batch](ringlet.data.Dataset.md#ringlet.data.Dataset.batch)" in index
    assert "[all_reduce](ringlet.ReplicaContext.md#ringlet.ReplicaContext.all_reduce)" in index
    assert "ringlet.MirroredStrategy.run)" not in index, "Strategy has it"


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("clusters.md", "../examples/digits.py", "source/examples/digits.py.md"),
        ("benchmarks/README.md", "../../bench/README.md", "../source/bench/README.md"),
        ("source/CONTRIBUTING.md", "docs/glossary.md", "../glossary.md"),
        ("source/bench/README.md", "all_reduce.py", "all_reduce.py.md"),
        ("guide.md", "datasets.md", "datasets.md"),
        ("tutorial/map_and_train.md", "sharded_arrays.ipynb", "sharded_arrays.md"),
        ("tpu.md", "../examples/pod_on_a_laptop.ipynb", "source/examples/pod_on_a_laptop.md"),
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


def test_a_notebook_is_a_page_with_its_outputs_and_pictures(site):
    output = {"data": {"image/svg+xml": ["<svg><title>four tiles</title></svg>"], "text/plain": ["ignored"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["f()"], "outputs": [{"text": ["printed\n"]}, output]},
        {"cell_type": "code", "source": ["!ls"], "outputs": [{"data": {"text/plain": ["5"]}}]},
    ]
    text = json.dumps({"cells": cells})
    files = site.notebook_files(text, "tutorial/lesson.md")
    page = files.pop("tutorial/lesson.md")
    assert page == (
        "# Title\ntext\n\n````python\nf()\n````\n\n````text\nprinted\n\n````\n\n![four tiles](lesson-1.svg)\n\n"
        "````sh\n!ls\n````\n\n````text\n5\n````\n\n"
        '<a href="../lesson.ipynb" download>Download this page as a notebook</a>\n'
    )
    assert files == {"tutorial/lesson.ipynb": text, "tutorial/lesson-1.svg": "<svg><title>four tiles</title></svg>"}


def test_every_page_of_the_navigation_is_in_docs_or_made(site):
    config = (site.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w/-]+\.md)$", config.partition("\nnav:")[2].partition("\nnot_in_nav")[0], re.MULTILINE)
    made = site.linked_files()
    assert {"tutorial/sharded_arrays.md", "source/examples/pod_on_a_laptop.md"} <= made.keys()
    assert [page for page in listed if page not in made and not (site.ROOT / "docs" / page).exists()] == []
