"""The converter from Swagger 2.0 to OpenAPI 3: servers, paths and security schemes.

Only the parts that the compiler reads are converted. References still point into the original document, which contains
the shared schemas.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import Unusable, list_at, object_at, text_at
from gateway.openapi.document.references import References, merge_path_item
from gateway.openapi.operation.extensions import KEYS
from gateway.openapi.warnings import Warnings

METHODS = frozenset(("get", "put", "post", "delete", "options", "head", "patch"))

_NO_SCHEMA = frozenset(("name", "in", "description", "required", "collectionFormat", "allowEmptyValue"))
_REPORTED = ("name", "in", "required", "description", "allowEmptyValue")
_COPIED_FIELDS = ("operationId", "summary", "description", "deprecated", "tags", "security", "externalDocs", *KEYS)
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_STYLES = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
_JSON = "application/json"
_HTTP = ("https", "http")
_FLOWS = {"application": "clientCredentials", "password": "password", "accessCode": "authorizationCode"}


def convert(root: Object, references: References, warnings: Warnings) -> Object:
    """Return the converted parts as an OpenAPI 3 document."""
    converter = _Converter(root, references, warnings)
    paths = object_at(root, "paths")
    return {
        "info": root.get("info"),
        "servers": _servers(root, _texts(root, "schemes")),
        "paths": {path: converter.path_item(item) for path, item in paths.items()},
        "security": root.get("security"),
        "components": {"securitySchemes": _schemes(object_at(root, "securityDefinitions"))},
        **{key: root[key] for key in KEYS if key in root},
    }


class _Converter:
    """Converts path items and operations; a shared parameter is converted once."""

    def __init__(self, root: Object, references: References, warnings: Warnings) -> None:
        self._root = root
        self._references = references
        self._warnings = warnings
        self._rewritten: dict[int, Object] = {}

    def path_item(self, node: object) -> object:
        item = as_object(node)
        if item is None:
            return node
        ref = item.get("$ref")
        if isinstance(ref, str):
            try:
                item = merge_path_item(self._references.follow(item, "a path item"), item)
            except Unusable:
                return node
        shared = list_at(item, "parameters")
        return {
            key: self._operation(value, shared) if key in METHODS else value
            for key, value in item.items()
            if key != "parameters"
        }

    def _operation(self, node: object, shared: Sequence[object]) -> object:
        operation = as_object(node)
        if operation is None:
            return node
        parameters = self._merge([*shared, *list_at(operation, "parameters")])
        objects = [item for item in map(as_object, parameters) if item is not None]
        body = next((item for item in objects if item.get("in") == "body"), None)
        fields = [item for item in objects if item.get("in") == "formData"] if body is None else []
        out: dict[str, object] = {key: operation[key] for key in _COPIED_FIELDS if key in operation}
        inside = {id(item) for item in (*fields, body)}
        out["parameters"] = [self._parameter(item) for item in parameters if id(item) not in inside]
        consumes = _texts(operation, "consumes") if "consumes" in operation else _texts(self._root, "consumes")
        if body is not None:
            out["requestBody"] = _body(body, consumes)
        elif fields:
            out["requestBody"] = _form(fields, consumes)
        out["responses"] = self._responses(operation)
        if "schemes" in operation:
            out["servers"] = _servers(self._root, _texts(operation, "schemes"))
        return out

    def _merge(self, parameters: Iterable[object]) -> list[object]:
        """The last parameter of each name and location. A reference that cannot be followed is kept unchanged."""
        merged: dict[object, object] = {}
        for node in parameters:
            try:
                found = self._references.follow(node, "a parameter")
            except Unusable:
                merged[id(node)] = node
                continue
            key = (found.get("name"), found.get("in"))
            merged[key if all(isinstance(part, str) for part in key) else id(found)] = found
        return list(merged.values())

    def _parameter(self, node: object) -> object:
        found = as_object(node)
        if found is None or "$ref" in found:
            return node
        if id(node) not in self._rewritten:
            self._rewritten[id(node)] = _parameter(found)
        return self._rewritten[id(node)]

    def _responses(self, operation: Object) -> Object:
        produces = _texts(operation, "produces") if "produces" in operation else _texts(self._root, "produces")
        return {status: self._response(node, produces) for status, node in object_at(operation, "responses").items()}

    def _response(self, node: object, produces: Sequence[str]) -> object:
        """A response, also behind a reference; the compiler reports a reference that cannot be followed."""
        try:
            response = self._references.follow(node, "a response")
        except Unusable:
            return node
        if "schema" in response and not produces:
            self._warnings.note("", "responses with a schema are read as JSON where `produces` is missing")
            produces = [_JSON]
        return {"content": _contents(response, produces)}


def _contents(response: Object, produces: Sequence[str]) -> Object:
    media = {"schema": response["schema"]} if "schema" in response else {}
    examples = object_at(response, "examples")
    return {name: {**media, "example": examples[name]} if name in examples else media for name in produces}


def _texts(node: Object, key: str) -> list[str]:
    return [item for item in list_at(node, key) if isinstance(item, str)]


def _servers(root: Object, schemes: Sequence[str]) -> list[object]:
    """The server URLs, https first. Default scheme: from `host`, else from the document's URL, else https."""
    scheme, host, start = _host(text_at(root, "host") or "")
    path = text_at(root, "basePath") or "/"
    path = path if path.startswith("/") else f"/{path}"
    if not host:
        return [{"url": path}]
    schemes = schemes or ([scheme] if scheme else [])
    ordered = [scheme for scheme in _HTTP if scheme in schemes] or list(schemes)
    scheme_relative = f"//{host}{start.rstrip('/')}{path}"
    urls = [f"{scheme}:{scheme_relative}" for scheme in ordered] or [scheme_relative, f"https:{scheme_relative}"]
    return [{"url": url} for url in urls]


def _host(written: str) -> tuple[str, str, str]:
    """Scheme, host and path of a `host` member. A host alone is correct, but many documents contain a URL."""
    scheme, divider, rest = written.rpartition("://")
    host, slash, path = rest.partition("/")
    return scheme.lower() if divider else "", host, slash + path


def _schemes(definitions: Object) -> Object:
    return {name: _scheme(node) for name, node in definitions.items()}


def _scheme(node: object) -> object:
    scheme = as_object(node)
    if scheme is None:
        return node
    if scheme.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if scheme.get("type") == "oauth2":
        flow = _FLOWS.get(str(scheme.get("flow")), "implicit")
        kept = {key: scheme[key] for key in ("tokenUrl", "authorizationUrl") if key in scheme}
        return {"type": "oauth2", "flows": {flow: kept}}
    return node


def _parameter(node: Object) -> Object:
    out: dict[str, object] = {key: node[key] for key in _REPORTED if key in node}
    out["schema"] = _schema(node)
    if node.get("type") == "array":
        out |= _list_style(node, is_form=node.get("in") == "query")
    return out


def _schema(node: Object) -> Object:
    return {key: value for key, value in node.items() if key not in _NO_SCHEMA}


def _list_style(node: Object, *, is_form: bool) -> Mapping[str, object]:
    written = node.get("collectionFormat", "csv")
    if isinstance(written, str) and written in _STYLES:
        return {"style": _STYLES[written], "explode": False}
    return {"style": "form" if is_form else "simple", "explode": is_form and written == "multi"}


def _body(node: Object, consumes: Sequence[str]) -> Object:
    media = {"schema": node.get("schema", {})}
    about = {key: node[key] for key in ("required", "description") if key in node}
    return {**about, "content": dict.fromkeys(consumes or [_JSON], media)}


def _form(fields: Sequence[Object], consumes: Sequence[str]) -> Object:
    has_file = any(field.get("type") == "file" for field in fields)
    named = {text: field for field in fields if (text := text_at(field, "name")) is not None}
    schema = {
        "type": "object",
        "properties": {name: _field_schema(field) for name, field in named.items()},
        "required": [name for name, field in named.items() if field.get("required") is True],
    }
    encoding = {name: _list_style(field, is_form=True) for name, field in named.items() if field.get("type") == "array"}
    declared = [item for item in consumes if item.split(";")[0].strip().lower() in {_FORM, _MULTIPART}]
    types = [_MULTIPART] if has_file else declared or [_FORM]
    content = {media_type: {"schema": schema, "encoding": encoding} for media_type in types}
    return {"required": bool(schema["required"]), "content": content}


def _field_schema(field: Object) -> Object:
    schema: dict[str, object] = {**_schema(field)}
    if field.get("type") == "file":
        schema |= {"type": "string", "format": "binary"}
    if text_at(field, "description") is not None:
        schema["description"] = field["description"]
    return schema
