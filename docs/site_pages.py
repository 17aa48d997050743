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

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
METHODS = Path(__file__).with_name("site_methods.py")
INTRODUCTION = """# Reference

Find here every public name, with its signature, parameters, errors and an example. Names of `ringlet.compat.tf` are in
[Porting](../porting.md).
"""
OPTIONAL = ("torch", "ray")  # public, but not names of `ringlet`: they need other packages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the reference in the navigation."""
    for entry in config.nav or []:
        if "Reference" in entry:
            entry["Reference"] = list(reference())
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
    """Return the pages of the reference: one for each public module, and an index of all names."""
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
        members = names[module]
        entries = (entry(f"{module.path}.{name}", member, homes) for name, member in members.items())
        page = f"reference/{module.path}.md"
        head = f"---\ntitle: {module.path}\n---\n\n::: {module.path}\n    options:\n      members: false\n\n"
        pages[page] = head + "".join(entries)
        pages["reference/index.md"] += (
            f"\n## [{module.path}]({module.path}.md)\n\n{summary(module)}\n\n| | |\n| --- | --- |\n"
        )
        pages["reference/index.md"] += "".join(row(name, member, homes) for name, member in members.items())
    return pages


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


def row(name: str, member: Any, homes: dict[str, str]) -> str:
    """Return the row of one name in the index, with the members of a class."""
    home = homes[member.canonical_path]
    anchor = f"{home.rpartition('.')[0]}.md#{home}"
    own, inherited = members_of(member, homes)
    links = ", ".join(f"[{method}]({anchor}.{method})" for method in sorted([*own, *inherited]))
    return f"| [{name}]({anchor}) | {summary(member)}{'<br>' if links else ''}{links} |\n"


def entry(path: str, member: Any, homes: dict[str, str]) -> str:
    """Return the entry of one name on the page of its module; a link if another page has it."""
    home = homes[member.canonical_path]
    if path != home:
        return f"## {path} {{ #{path} }}\n\nThe same as [`{home}`]({home.rpartition('.')[0]}.md#{home}).\n\n"
    # A function in a module of its name has another identifier than users write: an anchor of the latter.
    same = member.canonical_path.split(".")[-2] != member.name
    identifier, anchor = (path, "") if same else (member.canonical_path, f"[](){{ #{path} }}\n\n")
    return (
        f"{anchor}::: {identifier}\n    options:\n      heading: {path}\n      heading_level: 2\n"
        f"      inherited_members: {members_of(member, homes)[1] or False}\n\n"
    )
