"""Pages of the site that are not in this folder: the reference, notebooks, and the files elsewhere that pages link to.

MkDocs calls the functions ``on_...``. The sources are read, not imported: the site is built without a compiler.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
NAME = re.compile(r"<(a|h\d|pre)\b.*?</\1>|<code>(?:ringlet\.)?(?:errors\.)?(\w+)</code>", re.DOTALL)
HEADING = re.compile(r"(<h\d[^>]*>\s*(?:<[^>]*>\s*)*[\w.]+\.)(?=[A-Z])")
METHODS = Path(__file__).with_name("site_methods.py")
INTRODUCTION = """# Reference

Find here every public name, with its signature, parameters, errors and an example. Names of `ringlet.compat.tf` are in
[Porting](../porting.md).
"""
TABLE = "\n| name | |\n| --- | --- |\n"
# Pages of the manual with examples of a module, which its reference links to.
MANUAL = {
    "ringlet": {"guide.md": "the programming model", "clusters.md": "an example between processes"},
    "ringlet.checks": {"rank_zero.md": "rank 0"},
    "ringlet.cluster_resolver": {"clusters.md": "clusters"},
    "ringlet.collectives": {
        "collectives.md": "all collectives, with pictures",
        "processes.md": "an example between processes",
        "when-it-stalls.md": "reports of stalls",
    },
    "ringlet.coordinator": {"parameter_server.md": "parameter servers"},
    "ringlet.data": {"datasets.md": "datasets"},
    "ringlet.errors": {
        "clusters.md#what-can-go-wrong": "what can go wrong",
        "when-it-stalls.md": "reports of stalls",
    },
    "ringlet.observe": {"observe.md": "what each rank did last"},
    "ringlet.ray": {"ray.md": "Ray"},
    "ringlet.sharding": {"sharding.md": "sharded arrays", "tutorial/sharded_arrays.md": "a lesson"},
    "ringlet.torch": {"torch.md": "PyTorch"},
    "ringlet.tpu": {"tpu.md": "TPU slices"},
    "ringlet.train": {"checkpoints.md": "checkpoints", "surviving.md": "jobs that survive"},
}
OPTIONAL = ("torch", "ray")  # public, but not names of `ringlet`: they need other packages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the reference in the navigation."""
    for entry in config.nav or []:
        if "Reference" in entry:
            entry["Reference"] = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, text in {**reference(), **linked_files()}.items():
        files.append(File.generated(config, name, content=text))
    return files


# --- links out of docs/ -----------------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to files outside docs/ to their copies below source/."""
    return rewritten(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Link the names of errors to their pages, and let long headings break after the module."""

    def link(match: re.Match[str]) -> str:
        path = f"reference/ringlet.errors.{match[2]}"
        return (
            f'<a href="{get_relative_url(path + "/", page.url)}">{match[0]}</a>' if f"{path}.md" in pages else match[0]
        )

    pages = reference()
    return HEADING.sub(r"\1<wbr>", NAME.sub(link, html))


def place_of(page: str) -> Path:
    """Return the path in the project, relative to its root, of a page of the site."""
    return Path(page).relative_to("source") if page.startswith("source/") else Path("docs", page)


def page_of(path: Path) -> str:
    """Return the page of the site that shows a file of the project."""
    if path.suffix == ".ipynb":
        path = path.with_suffix(".md")
    if path.parts[0] == "docs":
        return path.relative_to("docs").as_posix()
    return f"source/{path}" if path.suffix == ".md" else f"source/{path}.md"


def rewritten(markdown: str, page: str) -> str:
    """Return the text of a page with links as they are on the site."""

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(place_of(page).parent / match[1]))
        return os.path.relpath(page_of(target), Path(page).parent) if (ROOT / target).is_file() else match[1]

    return LINK.sub(link, markdown)


def linked_files() -> dict[str, str]:
    """Return the pages of all files outside docs/ that pages link to, and of those they link to."""
    found: dict[str, str] = {}
    starts = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb")), ROOT / "CHANGELOG.md"]
    waiting = [path.relative_to(ROOT) for path in starts]
    while waiting:
        path = waiting.pop()
        text = (ROOT / path).read_text(encoding="utf-8")
        page = page_of(path)
        if page in found:
            continue
        if path.suffix in (".md", ".ipynb"):
            targets = (Path(os.path.normpath(path.parent / target)) for target in LINK.findall(text))
            waiting += [target for target in targets if target.parts[0] != "docs" and (ROOT / target).is_file()]
        else:
            text = f"# {path}\n\n````{path.suffix.lstrip('.')}\n{text}\n````\n"
        if path.suffix == ".ipynb":
            found |= notebook_files(text, page)
        elif path.parts[0] != "docs":
            found[page] = text
    return found


def notebook_files(text: str, page: str) -> dict[str, str]:
    """Return the page of a notebook, its pictures, and the notebook itself."""
    name = page.removesuffix(".md")
    files, parts = {f"{name}.ipynb": text}, list[str]()
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"````{language(source)}\n{source}\n````")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if picture := "".join(data.get("image/svg+xml", ())):
                file = f"{name}-{len(files)}.svg"
                files[file] = picture
                title = re.search("<title>(.*?)</title>", picture)
                parts.append(f"![{title[1] if title else ''}]({Path(file).name})")
            else:
                parts.append(f"````text\n{''.join(output.get('text', data.get('text/plain', ())))}\n````")
    # As HTML, which stays as it is: the link of a page would lead to this page.
    parts.append(f'<a href="../{Path(name).name}.ipynb" download>Download this page as a notebook</a>')
    return {**files, page: "\n\n".join(parts) + "\n"}


def language(cell: str) -> str:
    """Return the language in which a cell of a notebook is highlighted."""
    return "sh" if cell.startswith("!") else "python"


# --- reference --------------------------------------------------------------------------------------------------------


@functools.cache
def reference() -> dict[str, str]:
    """Return the pages of the reference: one for each public module and class, and an index of all names."""
    package: Any = griffe.load("ringlet", search_paths=[ROOT / "python"], extensions=griffe.load_extensions(METHODS))
    names, homes = dict[Any, dict[str, Any]](), dict[str, str]()
    waiting = [package, *(package[name] for name in OPTIONAL)]
    while waiting:
        module = waiting.pop(0)
        names[module] = {}
        for name in public_names(module):
            member = module[name]
            if member.is_module and name in member.members:  # a function, in a module of its name
                member = member[name]
            if member.is_module:
                waiting += [] if name == "compat" else [member]
            else:
                names[module][name] = member
                homes.setdefault(member.canonical_path, f"{module.path}.{name}")
    pages = {"reference/index.md": INTRODUCTION}
    for module in sorted(names, key=lambda module: module.path):
        paths = {f"{module.path}.{name}": member for name, member in names[module].items()}
        rows = {path: row(path, member, homes) for path, member in paths.items()}
        classes = [path for path, member in paths.items() if member.is_class and homes[member.canonical_path] == path]
        page = f"# {module.path}\n\n::: {module.path}\n    options: {{members: false, show_root_heading: false}}\n\n"
        page += manual(module.path) + (TABLE + "".join(map(rows.get, classes)) if classes else "") + "\n"
        others = {path: member for path, member in paths.items() if path not in classes}
        pages[f"reference/{module.path}.md"] = page + "".join(entry(path, others[path], homes) for path in others)
        for path in classes:
            head = f"---\ntitle: {path.rpartition('.')[2]}\n---\n\n"
            pages[f"reference/{path}.md"] = head + entry(path, paths[path], homes) + manual(module.path)
        head = f"\n## [{module.path}]({module.path}.md)\n\n{summary(module)}\n"
        pages["reference/index.md"] += head + TABLE + "".join(rows.values())
    return pages


def navigation() -> list[Any]:
    """Return the entries of the reference: the index, and for each module its page and those of its classes."""
    found: dict[str, list[str]] = {}
    for page, text in reference().items():
        if text.startswith("# ringlet"):
            module = page.removeprefix("reference/").removesuffix(".md")
            found[module] = [page]
        elif page != "reference/index.md":
            found[module].append(page)
    return ["reference/index.md", *({name: pages} if len(pages) > 1 else pages[0] for name, pages in found.items())]


def manual(module: str) -> str:
    """Return the links from the reference of a module to pages of the manual."""
    links = (f"[{title}](../{page})" for page, title in MANUAL.get(module, {}).items())
    return f"In the manual: {', '.join(links)}.\n" if module in MANUAL else ""


def public_names(module: Any) -> list[str]:
    """Return the public names of a module, as `dir` lists them."""
    lazy = "_PUBLIC" in module.members
    names = ast.literal_eval(str(module["_PUBLIC"].value)) if lazy else map(str, module.exports)
    return sorted(name for name in names if name[0] != "_")


def summary(member: Any) -> str:
    """Return the first paragraph of a docstring, as a cell of a table."""
    text = "" if member.docstring is None else member.docstring.value.split("\n\n")[0]
    return text.replace("\n", " ").replace("|", "\\|")


def members_of(member: Any, homes: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the documented members of a class: its own, and those of bases that are not public."""
    if not member.is_class:
        return [], []
    public = [base for base in member.mro() if base.canonical_path in homes and base.path != member.canonical_path]
    elsewhere = {name for base in public for name in base.all_members}
    documented = [name for name, item in member.all_members.items() if name[0] != "_" and item.has_docstring]
    own = [name for name in documented if name in member.members]
    return own, [name for name in documented if name not in own and name not in elsewhere]


def link_to(home: str, member: Any) -> str:
    """Return the link from a page of the reference to the entry of a name: a class has a page of its own."""
    return f"{home if member.is_class else home.rpartition('.')[0]}.md#{home}"


def row(path: str, member: Any, homes: dict[str, str]) -> str:
    """Return the row of one name in a table, with the members of a class."""
    anchor = link_to(homes[member.canonical_path], member)
    own, inherited = members_of(member, homes)
    links = ", ".join(f"[{method}]({anchor}.{method})" for method in sorted([*own, *inherited]))
    name = path.rpartition(".")[2]
    return f"| [{name}]({anchor}) | {summary(member)}{'<br>' if links else ''}{links} |\n"


def entry(path: str, member: Any, homes: dict[str, str]) -> str:
    """Return the entry of one name on the page of its module or class; a link if another page has it."""
    home = homes[member.canonical_path]
    if path != home:
        return f"## {path} {{ #{path} }}\n\nThe same as [`{home}`]({link_to(home, member)}).\n\n"
    # A function in a module of its name has another identifier than users write: an anchor of the latter.
    same = member.canonical_path.split(".")[-2] != member.name
    identifier, anchor = (path, "") if same else (member.canonical_path, f"[](){{ #{path} }}\n\n")
    level = 1 if member.is_class else 2
    return (
        f"{anchor}::: {identifier}\n    options:\n      heading: {path}\n      heading_level: {level}\n"
        f"      inherited_members: {members_of(member, homes)[1] or False}\n\n"
    )
