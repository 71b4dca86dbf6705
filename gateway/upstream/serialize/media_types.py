"""Classification of media types by the way a value is written."""

_LINES = frozenset(
    f"application/{name}" for name in ("jsonl", "jsonlines", "x-jsonlines", "ndjson", "x-ndjson", "json-seq")
)
_YAML = frozenset(("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"))


def essence(media_type: str) -> str:
    """The media type without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """True if a media type is JSON or one of its `+json` relatives."""
    name = essence(media_type)
    return name in {"application/json", "text/json"} or name.endswith("+json")


def is_form(media_type: str) -> bool:
    """True if a media type is the HTML form encoding."""
    return essence(media_type) == "application/x-www-form-urlencoded"


def is_lines(media_type: str) -> bool:
    """True if a media type is a sequence of JSON texts."""
    return essence(media_type) in _LINES


def is_yaml(media_type: str) -> bool:
    """True if a media type is YAML."""
    name = essence(media_type)
    return name in _YAML or name.endswith("+yaml")
