"""Collector of the visible text of HTML. `plain_text` imports it on demand, because most documents have no HTML."""

import re
from html.parser import HTMLParser

_BLOCKS = frozenset(
    (
        *("p", "div", "ul", "ol", "dl", "table", "thead", "tbody", "tr", "blockquote", "pre", "section", "aside"),
        *("article", "details", "summary", "hr", "h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
_SILENT = frozenset(("script", "style", "template", "noscript", "iframe", "object", "svg", "head", "title"))
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"))
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])", re.IGNORECASE
)


class TextCollector(HTMLParser):
    """Collects the visible text; one line for each block and list item."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line at a block; the content of a hidden element is omitted."""
        self._break(tag)
        if tag in _VOID:
            return
        names = dict(attrs)
        is_hidden = tag in _SILENT or "hidden" in names or _HIDDEN.search(names.get("style") or "") is not None
        self._open.append((tag, is_hidden))
        self._silent += is_hidden

    def handle_endtag(self, tag: str) -> None:
        """End the element, and those inside that have no end."""
        if any(name == tag for name, _ in self._open):
            while self._open:
                name, is_hidden = self._open.pop()
                self._silent -= is_hidden
                if name == tag:
                    break
        self._break(tag, ends=True)

    def collect(self, data: str) -> None:
        """Add text, unless it is hidden."""
        if not self._silent:
            self.parts.append(data)

    handle_data = collect

    def _break(self, tag: str, *, ends: bool = False) -> None:
        if self._silent:
            return
        if tag == "br" and not ends:  # `<br/>` both begins and ends
            self.parts.append("\n")
        elif tag == "li" and not ends:
            self.parts.append("\n- ")
        elif tag in {"td", "th"} and ends:
            self.parts.append(" ")
        elif tag in _BLOCKS:
            self.parts.append("\n" if tag == "tr" else "\n\n")
