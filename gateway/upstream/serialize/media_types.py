"""Classification of media types, and the choice of a body's media type by its value."""

from collections.abc import Sequence

from gateway.domain.http.plans import BodyKind, BodyPlan
from gateway.upstream.serialize.file_arguments import looks_like_file
from gateway.upstream.serialize.percent_encoding import is_list, is_object

_LINES = frozenset(
    f"application/{name}" for name in ("jsonl", "jsonlines", "x-jsonlines", "ndjson", "x-ndjson", "json-seq")
)
_YAML = frozenset(("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"))


def essence(media_type: str) -> str:
    """Return the media type without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """True if a media type is JSON or has the suffix `+json`."""
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


def fit(plans: Sequence[BodyPlan], value: object) -> BodyPlan:
    """Return the body plan for a value.

    The order of preference: a plan that supports the value's files, a plan that accepts its type, the first plan.
    """
    carriers = [plan for plan in plans if _supports_files(plan, value)]
    if carriers:
        own = value.get("content_type") if is_object(value) else None
        return next((plan for plan in carriers if plan.media_type == own), carriers[0])
    names = _types_of(value)
    return next((plan for plan in plans if not plan.takes or not names.isdisjoint(plan.takes)), plans[0])


def _supports_files(plan: BodyPlan, value: object) -> bool:
    if plan.kind is BodyKind.BYTES:
        return looks_like_file(value)
    if plan.kind is not BodyKind.MULTIPART or not is_object(value):
        return False
    return any(field.is_file and _has_file(value.get(field.name)) for field in plan.fields)


def _has_file(value: object) -> bool:
    return any(looks_like_file(item) for item in value) if is_list(value) else looks_like_file(value)


def _types_of(value: object) -> frozenset[str]:
    """Return the JSON Schema types of a value."""
    if isinstance(value, bool):
        return frozenset(("boolean",))
    if isinstance(value, int | float):
        is_whole = isinstance(value, int) or value.is_integer()
        return frozenset(("integer", "number") if is_whole else ("number",))
    if value is None:
        return frozenset(("null",))
    return frozenset(("string" if isinstance(value, str) else "array" if is_list(value) else "object",))
