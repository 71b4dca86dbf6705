"""A look at every HTML page that a test receives: none shows the gateway's own tags as text."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx
from markupsafe import escape

_WEB = Path(__file__).parents[2] / "gateway" / "web"
_TAG = re.compile(r'<[a-z][a-z0-9]*(?: [a-z-]+="|>)')
_OURS = " – MCP gateway</title>"


async def check_page(response: httpx.Response) -> None:
    """Fail for a page of the gateway with an escaped tag of its templates."""
    if not response.headers.get("content-type", "").startswith("text/html"):
        return
    await response.aread()
    if _OURS in response.text:
        assert list(escaped_tags(response.text)) == [], response.url


def escaped_tags(page: str) -> Iterator[str]:
    """The tags of the gateway's templates that a page shows as text."""
    yield from (tag for tag in _escaped_tags() if tag in page)


@cache
def _escaped_tags() -> tuple[str, ...]:
    found = {tag for path in _WEB.rglob("*.py") for tag in _TAG.findall(path.read_text())}
    return tuple(sorted(str(escape(tag)) for tag in found))


PAGE_HOOKS = {"response": [check_page]}
