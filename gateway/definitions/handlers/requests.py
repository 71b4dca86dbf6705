"""Reader of the HTTP requests in `http` handlers, steps and completions."""

import re
from collections.abc import Mapping

from gateway.definitions.field_reader import FieldReader
from gateway.definitions.handlers.fields import read_template, read_tree
from gateway.definitions.handlers.limits import MAX_CREDENTIAL_NAME_LENGTH, MAX_HEADERS, MAX_TIMEOUT_S, MIN_TIMEOUT_S
from gateway.definitions.handlers.specs import HttpSpec, ResultSpec
from gateway.definitions.limits import MAX_PATHS, MAX_POINTER_LENGTH
from gateway.definitions.projection import is_path, is_pointer
from gateway.definitions.templates.template import Template
from gateway.definitions.uri.url_templates import UrlTemplate
from gateway.domain.http.headers import FRAMING, OVERRIDES, is_private
from gateway.domain.json_access import as_object, point
from gateway.errors import HandlerInvalid, TemplateInvalid

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "QUERY")
REQUEST_FIELDS = ("method", "url", "headers", "body", "credential", "result", "timeout_s")
LOOKUP_FIELDS = ("url", "headers", "credential", "result", "timeout_s")
RESULT_FIELDS = ("pointer", "keep", "drop")

_BODILESS = frozenset(("GET", "HEAD", "OPTIONS"))
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")


def read_request(reader: FieldReader) -> HttpSpec | None:
    """Read a request; None if its URL is unusable. The request of a completion has no method or body: it is a GET."""
    is_lookup = not reader.has("method") and "method" not in reader.known
    method = "GET" if is_lookup else reader.choice("method", METHODS, required=True)
    if reader.has("body") and method in _BODILESS:
        reader.refuse("body", f"cannot be sent with {method}")
    url = read_url(reader, "url")
    headers = tuple(_headers(reader))
    body = read_tree(reader, "body")
    credential = reader.string("credential", max_length=MAX_CREDENTIAL_NAME_LENGTH)
    result = read_result(reader)
    timeout_s = reader.number("timeout_s", minimum=MIN_TIMEOUT_S, maximum=MAX_TIMEOUT_S)
    if url is None:
        return None
    return HttpSpec(
        method=method or "GET",
        url=url,
        headers=headers,
        body=body,
        credential=credential,
        result=result,
        timeout_s=timeout_s,
    )


def read_url(reader: FieldReader, name: str) -> UrlTemplate | None:
    """Read a URL with placeholders."""
    reader.require(name)
    if not reader.has(name):
        return None
    text = reader.raw(name)
    if not isinstance(text, str):
        reader.refuse(name, "must be a string")
        return None
    try:
        return UrlTemplate.parse(text)
    except (HandlerInvalid, TemplateInvalid) as wrong:
        reader.faults.take(wrong, reader.at(name))
        return None


def read_result(reader: FieldReader) -> ResultSpec:
    """Read the projection of a JSON response."""
    result = reader.nested("result", RESULT_FIELDS)
    if result is None:
        return ResultSpec()
    pointer = result.string("pointer", max_length=MAX_POINTER_LENGTH, is_blank_allowed=True)
    if pointer is not None and not is_pointer(pointer):
        result.refuse("pointer", "is not a JSON Pointer, such as /items/0")
    return ResultSpec(pointer=pointer, keep=_paths(result, "keep"), drop=_paths(result, "drop"))


def _headers(reader: FieldReader) -> list[tuple[str, Template]]:
    if not reader.has("headers"):
        return []
    members: Mapping[str, object] = as_object(reader.raw("headers")) or {}
    headers = FieldReader(reader.raw("headers"), tuple(members), where=reader.at("headers"), faults=reader.faults)
    if len(members) > MAX_HEADERS:
        reader.refuse("headers", f"has more than {MAX_HEADERS} headers")
    found: list[tuple[str, Template]] = []
    seen: set[str] = set()
    for name in list(members)[:MAX_HEADERS]:
        reason = _objection(name)
        if name.lower() in seen:
            reason = "is given twice"
        seen.add(name.lower())
        if reason is not None:
            headers.refuse(name, reason)
            continue
        template = read_template(headers, name)
        if template is not None and any(character in template.source for character in "\r\n\0"):
            headers.refuse(name, "has a line break")
        elif template is not None:
            found.append((name, template))
    return found


def _objection(name: str) -> str | None:
    """Return the reason why a header cannot be declared; None if it can."""
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        return "is not the name of a header"
    if lower == "authorization":
        return "must not be set here; store a credential and refer to it with 'credential'"
    if lower.replace("_", "-") in OVERRIDES:
        return "would override the method or target; declare these directly"
    if lower in FRAMING or is_private(name):
        return "is set by the gateway only"
    return None


def _paths(reader: FieldReader, name: str) -> tuple[str, ...]:
    paths = reader.strings(name, max_items=MAX_PATHS, max_length=MAX_POINTER_LENGTH, min_items=1)
    for index, path in enumerate(paths):
        if not is_path(path):
            reader.faults.add(reader.at(name) + point(index), "is not a path, such as /items/*/id")
    return paths
