"""Redaction of stored credentials in upstream responses: some upstreams echo what they receive.

Responses are decoded (`escapes`) and compared with the forms of the credential (`secret_encodings`). JSON is compared
value by value and name by name, text in its charset, other bodies as bytes. Matches are replaced by `***`, in other
bodies by as many asterisks.

The redacted response is compared once more. If a value or body still contains a credential, all of it is replaced.
Decision 23 (`docs/decisions`) lists the forms that are not found.
"""

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import Credential, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.text_search.escapes import ALL_ESCAPES, ASCII_ESCAPES, DECODING_ROUNDS, TracedText, decode, squeeze
from gateway.handlers.redaction.limits import MAX_CACHED, MAX_OVERLAP_BYTES, MAX_PLACES, WINDOW_BYTES
from gateway.handlers.redaction.secret_encodings import encodings_of
from gateway.handlers.response_body.charsets import declared_charset, decode_text
from gateway.handlers.response_body.kinds import is_json, is_text, is_utf8, kind_of

Credentials = tuple[Credential, ...]
Span = tuple[int, int]

_MARK = b"***"
_OVERLAP_FACTOR = 16
"""Overlap of windows as a multiple of the longest form, at most half a window. Escapes lengthen a form: `%25%34%31`
has nine bytes for one.
"""
_BASE64_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*', re.DOTALL)
_SAFE_CONTENT_TYPES = frozenset({"", "application/json", "application/json; charset=utf-8", "text/plain", "text/html"})
_UTF8 = frozenset({None, "utf-8", "ascii"})
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Redaction:
    """Cache of redactors by credentials, usually of one handler."""

    def __init__(self) -> None:
        self._known = BoundedCache[Credentials, Redactor](MAX_CACHED)

    async def apply(self, tenant: TenantId, response: UpstreamResponse, credentials: Credentials) -> UpstreamResponse:
        """Return the response without the credentials."""
        redactor = self._known.get(credentials)
        if redactor is None:
            redactor = self._known[credentials] = Redactor(credentials)
        return await run_large(tenant, len(response.body), redactor.redact, response)


class Redactor:
    """Finds and replaces a set of credentials."""

    def __init__(self, credentials: Credentials) -> None:
        forms = encodings_of(credentials)
        self._squeezed = (*forms.plain, *forms.base64)
        self._base64 = frozenset(forms.base64)
        self._exact = forms.exact
        self._is_ascii = forms.is_ascii
        self._escapes = ASCII_ESCAPES if forms.is_ascii else ALL_ESCAPES
        lengths = [len(form) for form in (*self._squeezed, *self._exact)]
        max_length, min_length = max(lengths, default=0), min(lengths, default=0)
        # UTF-8, in which the forms are encoded, may need four bytes where another charset needs one.
        self._min_length = min_length if forms.is_ascii else min_length // 4
        self._overlap = min(_OVERLAP_FACTOR * max_length, MAX_OVERLAP_BYTES)

    def redact(self, response: UpstreamResponse) -> UpstreamResponse:
        """Return the response without the credentials, in body and in all exposed headers."""
        if not self._squeezed and not self._exact:
            return response
        has_values = response.retry_after is not None or response.location is not None or response.headers
        if response.content_type not in _SAFE_CONTENT_TYPES or has_values:
            response = self._with_headers(response)  # guard: redaction-of-headers
        return self._with_body(response) if len(response.body) >= self._min_length else response

    def finds(self, text: bytes) -> bool:
        """True if the text contains a credential, even if it is escaped."""
        if len(text) <= WINDOW_BYTES:
            return self._contains_credential(text)
        return any(self._contains_credential(window) for _, window in self._windows(text))

    def _with_headers(self, response: UpstreamResponse) -> UpstreamResponse:
        after, where = response.retry_after, response.location
        return replace(
            response,
            content_type=self._header(response.content_type),
            retry_after=None if after is None else self._header(after),
            location=None if where is None else self._header(where),
            headers=tuple((name, self._header(value)) for name, value in response.headers),
        )

    def _with_body(self, response: UpstreamResponse) -> UpstreamResponse:
        kind, parameters = kind_of(response)
        body = response.body
        is_read = is_json(kind) or is_text(kind)
        text = self._in_utf8(body, kind, parameters) if is_read else None  # guard: redaction-of-charsets
        if not self.finds(body if text is None else text):
            return response
        if text is not None:
            body, response = text, replace(response, content_type=f"{kind}; charset=utf-8")
        if is_json(kind) and _is_json(body):
            return replace(response, body=self._json(body))
        if is_read or (not kind and is_utf8(body)):
            return replace(response, body=self._text(body))
        return replace(response, body=self._bytes(body))

    def _in_utf8(self, body: bytes, kind: str, parameters: str) -> bytes | None:
        """Return the text in UTF-8 as it will be read, or None if the bytes are the same."""
        is_xml = kind.endswith("xml")
        is_other = declared_charset(parameters) not in _UTF8 if parameters else False
        if not (is_other or is_xml or not self._is_ascii or body.startswith(_BYTE_ORDER_MARKS)):
            return None
        if is_json(kind) and b"\0" not in body and is_utf8(body):
            return None  # JSON is read as UTF-8, regardless of the declared charset
        text = decode_text(body, parameters, is_xml=is_xml).encode("utf-8", "replace")
        return None if text == body else text

    def _json(self, body: bytes) -> bytes:
        """Return the JSON with the credentials in strings, names and numbers redacted."""
        suspects = [
            (start, start + len(window)) for start, window in self._windows(body) if self._contains_credential(window)
        ]
        pieces: list[bytes] = []
        position = 0
        for found in _TOKEN.finditer(body):
            start, end = found.span()
            while suspects and suspects[0][1] <= start:
                del suspects[0]
            if not suspects or len(pieces) > 2 * MAX_PLACES:
                break
            if end <= suspects[0][0] or end - start < self._min_length or not self.finds(found[0]):
                continue
            pieces += (body[position:start], self._token(found[0]))
            position = end
        redacted = b"".join((*pieces, body[position:]))
        return b'"***"' if self.finds(redacted) else redacted

    def _token(self, token: bytes) -> bytes:
        redacted = self._without(token, self._spans(token))
        return redacted if _is_json(redacted) and not self.finds(redacted) else b'"***"'

    def _text(self, text: bytes) -> bytes:
        spans = self._spans(text)
        redacted = _MARK if len(spans) > MAX_PLACES else self._without(text, spans)  # guard: redaction-is-bounded
        return _MARK if self.finds(redacted) else redacted

    def _bytes(self, body: bytes) -> bytes:
        """Return the body with each match replaced by as many asterisks, so that later bytes keep their offsets."""
        redacted = bytearray(body)
        for start, end in self._spans(body):
            redacted[start:end] = b"*" * (end - start)
        return b"*" * len(body) if self.finds(bytes(redacted)) else bytes(redacted)

    def _header(self, value: str) -> str:
        raw = value.encode("utf-8", "replace")
        return self._text(raw).decode("utf-8", "replace") if self.finds(raw) else value

    def _windows(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        if len(text) <= WINDOW_BYTES:
            yield 0, text
            return
        for start in range(0, max(1, len(text) - self._overlap), WINDOW_BYTES - self._overlap):
            yield start, text[start : start + WINDOW_BYTES]

    def _contains_credential(self, text: bytes) -> bool:
        if self._contains_form(text):
            return True
        for _ in range(DECODING_ROUNDS):
            decoded = decode(text, self._escapes)  # guard: credential-echo-encoded
            if decoded is text or decoded == text:
                return False
            text = decoded
            if self._contains_form(text):
                return True
        return False

    def _contains_form(self, text: bytes) -> bool:
        """True if the text contains one of the forms, without decoding escapes."""
        squeezed = squeeze(text)
        for form in self._squeezed:  # a generator would cost as much as the search
            if form in squeezed:
                return True
        return bool(self._exact) and any(form in text for form in self._exact)

    def _spans(self, text: bytes) -> list[Span]:
        """Return the spans of the credentials in the text, in order, neither nested nor adjacent."""
        found = sorted(
            (position + start, position + end)
            for position, window in self._windows(text)
            if self._contains_credential(window)
            for start, end in self._spans_in(window)
        )
        merged: list[Span] = []
        for first, end in found:
            start = first
            while start and text[start - 1] == ord("\\"):
                start -= 1  # so that no part of an escape remains
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return merged

    def _spans_in(self, text: bytes) -> Iterator[Span]:
        traced = TracedText.of(text)
        for _ in range(DECODING_ROUNDS):
            squeezed = traced.squeezed()
            for form in self._squeezed:
                widen = form in self._base64
                for start, end in _occurrences(squeezed.text, form):
                    yield squeezed.span(*(_extend_span(squeezed, start, end) if widen else (start, end)))
            for form in self._exact:
                for start, end in _occurrences(traced.text, form):
                    yield traced.span(start, end)
            decoded = traced.decoded(self._escapes)
            if decoded.text == traced.text:
                return
            traced = decoded

    @staticmethod
    def _without(text: bytes, spans: list[Span]) -> bytes:
        pieces: list[bytes] = []
        position = 0
        for start, end in spans:
            pieces += (text[position:start], _MARK)
            position = end
        return b"".join((*pieces, text[position:]))


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.format(text, indent=-1).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _occurrences(text: bytes, form: bytes) -> Iterator[Span]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))


def _extend_span(text: TracedText, start: int, end: int) -> Span:
    """Include the neighbouring base64 characters, which contain bits of the secret's first and last byte."""
    before, after = start - 1, end + 1
    if start and text.text[before] in _BASE64_BYTES and text.span(before, start)[1] == text.span(start, end)[0]:
        start = before
    if (
        end < len(text.text)
        and text.text[end] in _BASE64_BYTES
        and text.span(start, end)[1] == text.span(end, after)[0]
    ):
        end = after
    return start, end
