"""Kind of a response body, by its content type or, without one, by its bytes."""

from gateway.domain.http.requests import UpstreamResponse


def kind_of(response: UpstreamResponse) -> tuple[str, str]:
    """Return the media type in lower case, and its parameters."""
    kind, _, parameters = response.content_type.partition(";")
    return kind.strip().lower(), parameters


def is_json(kind: str) -> bool:
    """True if bodies of this type are JSON texts."""
    return kind == "application/json" or kind.endswith("+json") or kind in _JSON


def is_text(kind: str) -> bool:
    """True if bodies of this type are readable text."""
    return kind.startswith("text/") or kind.endswith(_TEXT_ENDINGS) or kind in _TEXTUAL


_JSON = frozenset({"text/json", "text/x-json", "application/x-json"})
_TEXT_ENDINGS = (
    "+xml",
    "/xml",
    "+json",
    "/json",
    "+yaml",
    "/yaml",
    "/x-yaml",
    "json-seq",
    "json-lines",
    "jsonl",
    "ndjson",
)
_TEXTUAL = frozenset(
    f"application/{name}"
    for name in (
        *("javascript", "ecmascript", "x-www-form-urlencoded", "graphql", "sql", "toml", "jwt", "x-pem-file"),
        *("x-sh", "xml-dtd", "n-triples", "n-quads", "trig", "sparql-query", "x-httpd-php", "x-latex", "x-tex"),
    )
)


def is_utf8(body: bytes) -> bool:
    """True if the bytes are UTF-8 without NULs; the last three may be an incomplete character."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(body) - 3 and b"\0" not in body
    return b"\0" not in body
