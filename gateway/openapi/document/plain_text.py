"""Plain text of descriptions: HTML becomes text, and what a browser would not show is left out.

A text is HTML if it has a known tag outside of code. Scripts, styles, comments and hidden elements have no text.
Entities are decoded before invisible characters are removed, so none is smuggled in as an entity.
"""

import re
from html.parser import HTMLParser

from gateway.openapi.document.json_access import clean_text

MAX_HTML_LENGTH = 20_000
"""Characters of a text that are read as HTML; what follows is left out, for tags without an end cost its square."""

_TAGS = (
    "p|br|hr|a|b|i|u|s|em|strong|code|pre|kbd|samp|var|tt|ul|ol|li|dl|dt|dd|div|span|table|thead|tbody|tr|td|th|caption"
    "|h[1-6]|blockquote|img|sup|sub|small|big|font|center|details|summary|section|aside|article|iframe|script|style|svg"
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE)
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
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
_SPACES = re.compile(r"[ \t\f\v]+")
_LINES = re.compile(r" ?\n ?(?:\n ?)+")


def plain_text(text: str) -> str:
    """Return the text without HTML and invisible characters; Markdown stays as it is."""
    if "<" not in text or not _TAG.search(_CODE.sub("", text)):
        return clean_text(text)
    reader = _TextCollector()
    for number, part in enumerate(_CODE.split(text[:MAX_HTML_LENGTH])):
        if number % 2:
            reader.collect(part)
        else:
            reader.feed(part)
    reader.close()
    spaced = _SPACES.sub(" ", "".join(reader.parts))
    return clean_text(_LINES.sub("\n\n", spaced.replace(" \n", "\n").replace("\n ", "\n")))


class _TextCollector(HTMLParser):
    """Collects the visible text; one line for each block and list item."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)
        if tag in _VOID:
            return
        names = dict(attrs)
        is_hidden = tag in _SILENT or "hidden" in names or _HIDDEN.search(names.get("style") or "") is not None
        self._open.append((tag, is_hidden))
        self._silent += is_hidden

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self._open):
            while self._open:
                name, is_hidden = self._open.pop()
                self._silent -= is_hidden
                if name == tag:
                    break
        self._break(tag, ends=True)

    def collect(self, data: str) -> None:
        """Add a text, unless it is hidden."""
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
