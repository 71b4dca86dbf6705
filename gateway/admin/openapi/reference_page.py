"""`/admin/docs`: the reference of the admin API as one HTML page without scripts, which loads nothing.

It is public, like the OpenAPI document, because it contains no tenant's data.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from markupsafe import Markup, escape

from gateway.admin.openapi.reference import (
    Block,
    ReferenceHeading,
    ReferenceList,
    ReferenceParagraph,
    ReferenceTable,
)

PATH = "/admin/docs"

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1rem }
h1, h2, h3, p, li, td { overflow-wrap: anywhere }
h2 { border-bottom: 2px solid; margin-top: 3rem }
h3 { margin: 2rem 0 0 }
nav ul { columns: 14rem; padding-left: 1.2rem }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { border: 1px solid; padding: .3rem .6rem; text-align: left; vertical-align: top }
:target { background: #fc08 }
:focus-visible { outline: 3px solid #06c; outline-offset: 2px }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS: Mapping[str, str] = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Admin API – MCP gateway</title>
<style>{style}</style>
</head>
<body>
<h1>Admin API</h1>
<p>All paths begin with <code>{root}</code>. The <a href="{root}/openapi.json">OpenAPI document</a> has the same.</p>
<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
<main>
{content}
</main>
</body>
</html>
""")
_MARKED = re.compile(r"`([^`]+)`|\[(\w+)\]\((#\w+)\)")


def write_page(blocks: Iterable[Block], root: str) -> str:
    """Write the page; `root` is the prefix of all paths."""
    shown = list(blocks)
    tags = [one for one in shown if isinstance(one, ReferenceHeading) and one.level == 2]
    contents = Markup("\n").join(Markup('<li><a href="#{}">{}</a></li>').format(one.anchor, one.text) for one in tags)
    content = Markup("\n").join(map(_html, shown))
    return str(_PAGE.format(style=Markup(_STYLE), root=root, contents=contents, content=content))  # noqa: S704


def _html(block: Block) -> Markup:
    match block:
        case ReferenceHeading(level=level, text=text, anchor=anchor):
            return Markup('<h{0} id="{1}">{2}</h{0}>').format(level, anchor, text)
        case ReferenceParagraph(text=text):
            return Markup("<p>{}</p>").format(_inline(text))
        case ReferenceList(items=items):
            return _enclosed("ul", (_enclosed("li", [_inline(item)]) for item in items))
        case ReferenceTable(head=head, rows=rows):
            lines = [[_enclosed("th", [_inline(cell)]) for cell in head]]
            lines += [[_enclosed("td", [_inline(cell)]) for cell in row] for row in rows]
            return _enclosed("table", (_enclosed("tr", cells) for cells in lines))
        case _:
            assert_never(block)


def _enclosed(name: str, content: Iterable[Markup]) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(Markup(name), Markup().join(content))  # noqa: S704


def _inline(text: str) -> Markup:
    return Markup().join(_parts(text))


def _parts(text: str) -> Iterator[Markup]:
    end = 0
    for found in _MARKED.finditer(text):
        yield escape(text[end : found.start()])
        code, name, target = found.groups()
        yield Markup("<code>{}</code>").format(code) if code else Markup('<a href="{}">{}</a>').format(target, name)
        end = found.end()
    yield escape(text[end:])
