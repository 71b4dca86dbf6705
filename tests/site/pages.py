"""The pages of the site: those of `docs/` and those that they link, with generated parts and the navigation.

Paths are those of the repository, so links stay as they are. A part between `<!-- generated: NAME -->` and
`<!-- end -->` names the source of its content; the site has the content there. The sections of `docs/README.md` are
the navigation.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.site.parts import PARTS, Render

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"

_PART = re.compile(r"<!-- generated: ([a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
_ROW = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\) \|", re.MULTILINE)


def write_pages(folder: Path) -> None:
    """Write all pages and the files that they link; an earlier content of the folder is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in linked_files():
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(page(path))
        else:
            shutil.copy(path, place)
    (folder / "index.md").write_text(start_page())


def linked_files() -> list[Path]:
    """Every page of `docs/`, and each file of the repository that one of them leads to, over any number of links."""
    found = dict.fromkeys(path for path in sorted(DOCS.rglob("*.md")) if path != INDEX)
    waiting = [*found, INDEX]
    while waiting:
        for target in _targets(waiting.pop()):
            if target.is_file() and target not in found and target != INDEX:
                found[target] = None
                if target.suffix == ".md":
                    waiting.append(target)
    return list(found)


def page(path: Path, parts: Mapping[str, Render] = PARTS) -> str:
    """The text of a page with its generated parts; a link to the index leads to the first page of the site."""
    text = _PART.sub(lambda found: parts[found[1]]().strip(), path.read_text())
    return _LINK.sub(lambda found: f"{found[1]}({_moved(found[2], path)})", text)


def parts_named(path: Path) -> list[str]:
    """The generated parts of a page."""
    return _PART.findall(path.read_text())


def start_page() -> str:
    """The index with links from the top of the repository, and its sections as the navigation."""
    text = _LINK.sub(lambda found: f"{found[1]}({_from_top(found[2])})", INDEX.read_text())
    trees = "\n".join(_tree(title, pages) for title, pages in navigation().items())
    return f"{text}\n{trees}"


def navigation() -> dict[str, list[str]]:
    """The pages of each section of the index, as paths from the top of the repository."""
    return {
        title: [_from_top(link) for link in _ROW.findall(rows)] for title, rows in _SECTION.findall(INDEX.read_text())
    }


def _tree(title: str, pages: Sequence[str]) -> str:
    lines = "\n".join(one.removesuffix(".md") for one in pages)
    return f"```{{toctree}}\n:caption: {title}\n:hidden:\n:titlesonly:\n\n{lines}\n```\n"


def _from_top(link: str) -> str:
    if "://" in link or link.startswith("#"):
        return link
    path, mark, anchor = link.partition("#")
    return f"{(DOCS / path).resolve().relative_to(ROOT).as_posix()}{mark}{anchor}"


def _moved(link: str, page_path: Path) -> str:
    if (page_path.parent / link.partition("#")[0]).resolve() != INDEX:
        return link
    ups = len(page_path.relative_to(ROOT).parents) - 1
    return f"{'../' * ups}index.md"


def _targets(path: Path) -> Iterator[Path]:
    for _, link in _LINK.findall(path.read_text()):
        if "://" not in link and not link.startswith(("#", "mailto:")):
            target = (path.parent / link.partition("#")[0]).resolve()
            if target.is_relative_to(ROOT):
                yield target
