"""URL templates of declared HTTP requests: a fixed origin, and placeholders in path and query.

Filled values are percent-encoded completely, so a value stays within its segment or parameter. In the path, an empty
value, a dot segment, a backslash and a control character are refused.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from gateway.definitions.templates.template import Template
from gateway.definitions.templates.tokens import PieceKind, split_template
from gateway.definitions.uri.limits import MAX_REQUEST_URL_LENGTH
from gateway.errors import Fault, HandlerInvalid, TemplateFailed

_ORIGIN = re.compile(r"https?://[^/?#{}\\\s@]+")
_LITERAL = re.compile(r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_DECODINGS = 3
_PLACE = "x"
_OPEN, _CLOSE = "\ue000", "\ue001"
_FILLED = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*+){_CLOSE}")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A URL with placeholders after its origin."""

    source: str
    origin: str
    rest: Template

    @classmethod
    def parse(cls, text: str) -> "UrlTemplate":
        """Parse a URL template.

        Raises:
            HandlerInvalid: the URL is too long, its origin is missing or not literal, its literal text is not valid in
                a URL, or its path has dot segments.
            TemplateInvalid: its Liquid is not well-formed.
        """
        origin = _read_origin(text)
        rest = text[len(origin) :]
        if rest[:1] not in {"", "/", "?"}:
            raise _refuse("the path must begin with '/'; scheme and host cannot be templates")
        literal = ""
        for piece in split_template(rest):
            if piece.kind is PieceKind.TEXT and not _LITERAL.fullmatch(piece.text):
                raise _refuse("its text has characters that have to be percent-encoded, or a fragment")
            literal += {PieceKind.TEXT: piece.text, PieceKind.OUTPUT: _PLACE, PieceKind.TAG: ""}[piece.kind]
        literal = literal.partition("?")[0]
        if any(unquote(segment) in {".", ".."} for segment in literal.split("/")):
            raise _refuse("its path may not have '.' and '..' segments")
        return cls(text, origin, Template.parse(rest))

    def render(self, variables: Mapping[str, object], *, check: Callable[[str], None] | None = None) -> str:
        """Return the URL for these variables; `check` is called with each value in the path.

        Raises:
            TemplateFailed: a value is not allowed in the URL, or the URL or the rendering exceeds a limit.
        """
        written = self.rest.render(variables, escape=_escape)
        path, mark, query = written.partition("?")
        for value in _FILLED.findall(path):
            if not value:
                raise TemplateFailed("a value in the URL's path is empty, which would change the path")
            if check is not None:
                check(unquote(value))
        url = self.origin + _bare(path) + mark + _bare(query)
        _check_segments(_bare(path))
        if len(url) > MAX_REQUEST_URL_LENGTH:
            raise TemplateFailed(f"the URL is longer than {MAX_REQUEST_URL_LENGTH} characters")
        return url


def _read_origin(text: str) -> str:
    if len(text) > MAX_REQUEST_URL_LENGTH:
        raise _refuse(f"it has at most {MAX_REQUEST_URL_LENGTH} characters")
    found = _ORIGIN.match(text)
    if found is None:
        raise _refuse("it must begin with http:// or https:// and a literal host, without user name")
    try:
        parts = urlsplit(found[0])
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not found[0].isascii():
        raise _refuse("its host or port cannot be read")
    return found[0]


def _refuse(reason: str) -> HandlerInvalid:
    return HandlerInvalid(f"url: {reason}", faults=[Fault(pointer="", reason=reason)])


def _escape(text: str) -> str:
    try:
        return f"{_OPEN}{quote(text, safe='')}{_CLOSE}"
    except UnicodeEncodeError:
        raise TemplateFailed("a value in the URL is not valid Unicode") from None


def _bare(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def _check_segments(path: str) -> None:
    """Refuse a path that a server could resolve to another path, even if the server decodes it three times."""
    form = path
    for _ in range(_DECODINGS):
        form = unquote(form)
        if _HIDDEN.search(form):
            raise TemplateFailed("a value in the URL's path has a backslash or a control character")
        if any(segment.partition(";")[0].strip() in {".", ".."} for segment in form.split("/")):
            raise TemplateFailed("a value makes a '.' or '..' segment in the URL's path, which would change the path")
