"""`docs/errors.md` as the HTML page that the gateway serves at `/docs/errors`, where the `type` of a problem leads."""

import re
from collections.abc import Iterator, Sequence
from html import escape

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Errors of the MCP gateway</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse }
td, th { border: 1px solid #bbb; padding: .3rem .6rem; text-align: left; vertical-align: top }
tr:target { background: #fc08 }
@media (max-width: 40rem) {
  table { display: block; overflow-x: auto }
  td, th { min-width: 6rem }
}
</style>
</head>
<body>
<!-- Written by `python -m tests.deploy.pages` from docs/errors.md; do not edit. -->
"""
_CODE = re.compile(r"`([a-z_.]+)`")


def errors_page(markdown: str) -> str:
    """The page; the row of a code has the code as its id."""
    return _HEAD + "".join(f"{line}\n" for line in _render(markdown.strip().split("\n\n"))) + "</body>\n</html>\n"


def _render(blocks: Sequence[str]) -> Iterator[str]:
    for block in blocks:
        lines = block.splitlines()
        if block.startswith("#"):
            level = len(block) - len(block.lstrip("#"))
            yield f"<h{level}>{_text(block.lstrip('# '))}</h{level}>"
        elif lines[0].startswith("|"):
            yield from _table([[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines])
        else:
            yield f"<p>{_text(' '.join(lines))}</p>"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>"
    yield f"<tr>{''.join(f'<th>{_text(cell)}</th>' for cell in rows[0])}</tr>"
    for row in rows[2:]:
        code = _CODE.fullmatch(row[0])
        place = f' id="{code[1]}"' if code else ""
        yield f"<tr{place}>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield "</table>"


def _text(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
