"""Plain text of descriptions: HTML becomes text, and parts that a browser would hide are removed.

A text is treated as HTML if it has a known tag outside of code. Scripts, styles, comments and hidden elements have no
text. Entities are decoded before invisible characters are removed, so no invisible character remains as an entity.
"""

import re

from gateway.openapi.document.json_access import clean_text
from gateway.openapi.document.limits import MAX_HTML_LENGTH

_TAGS = (
    "p|br|hr|a|b|i|u|s|em|strong|code|pre|kbd|samp|var|tt|ul|ol|li|dl|dt|dd|div|span|table|thead|tbody|tr|td|th|caption"
    "|h[1-6]|blockquote|img|sup|sub|small|big|font|center|details|summary|section|aside|article|iframe|script|style|svg"
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE)
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_SPACES = re.compile(r"[ \t\f\v]+")
_LINES = re.compile(r" ?\n ?(?:\n ?)+")


def plain_text(text: str) -> str:
    """Return the text without HTML and invisible characters; Markdown is unchanged."""
    if "<" not in text or not _TAG.search(_CODE.sub("", text)):
        return clean_text(text)
    from gateway.openapi.document.html_text import TextCollector  # noqa: PLC0415  # most documents have no HTML

    reader = TextCollector()
    for number, part in enumerate(_CODE.split(text[:MAX_HTML_LENGTH])):
        if number % 2:
            reader.collect(part)
        else:
            reader.feed(part)
    reader.close()
    spaced = _SPACES.sub(" ", "".join(reader.parts))
    return clean_text(_LINES.sub("\n\n", spaced.replace(" \n", "\n").replace("\n ", "\n")))
