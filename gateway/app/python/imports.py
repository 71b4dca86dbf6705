"""Import of OpenAPI documents in code: the operations are compiled as for a source, and registered as tools.

The program's credentials stay in its memory. Unlike a source, the tools belong to all tenants or to those that the
program names, and no tenant can override them.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec

from gateway.app.local.documents import LocalDocument, LocalOptions, LocalSource, compile_all
from gateway.app.local.loopback import loopback_address
from gateway.app.python.primitives import read_tenants
from gateway.app.python.registrations import Registration, Tenants
from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.definitions.contract.metadata import Level, read_level
from gateway.domain.http.requests import Credential
from gateway.domain.primitives import Family
from gateway.domain.sources import CompiledOperation, OperationRule
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import FULL_INPUT_META
from gateway.domain.updates.import_reports import ImportReport
from gateway.errors import BadInput, DocumentTooLarge, GatewayError, InvalidDocument
from gateway.handlers.python.registry import CodeOperation
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES
from gateway.upstream.client import UpstreamClient

Document: TypeAlias = Mapping[str, Any] | bytes | Path | str
"""A document as an object, its text, the path of its file, or an http or https URL."""
Secret: TypeAlias = str | tuple[str, str]
"""The secret of a security scheme; for basic authentication and client credentials, name and secret."""
SafetyLevels: TypeAlias = Level | Mapping[str, Level]
"""One level for all tools, or levels by operationId, by `METHOD /path` or by the name of the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedDocument:
    """The registrations of a document, the report on its operations, and the loopback addresses that they call."""

    registrations: tuple[Registration, ...]
    report: ImportReport
    reachable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeImport:
    """A document to import; `operations` selects by patterns of operationIds, or of `METHOD /path`."""

    name: str
    document: Document
    credentials: Mapping[str, Secret] = field(default_factory=dict[str, Secret], repr=False)
    operations: Collection[str] | None = None
    safety: SafetyLevels | None = None
    base_url: str | None = None
    prefix: str | None = None
    tenants: Tenants = None


def import_document(wanted: CodeImport, *, egress_allow: Iterable[str]) -> ImportedDocument:
    """Compile a document in a worker process, and return its operations as registrations. Any thread may call this.

    Raises:
        InvalidDocument, DocumentTooLarge: the document cannot be read, or no operation is selected.
        BadInput: a credential belongs to no security scheme of the document, or a level to no operation.
        DefinitionInvalid: a level or `tenants` is invalid.
        UpstreamError, Unavailable: the document cannot be fetched.
    """
    document = _locate(wanted)
    typed = [url for url in (wanted.base_url, document.url) if url is not None]
    permitted = [address for url in typed if (address := loopback_address(url)) is not None]
    options = LocalOptions(include=_rules(wanted.operations), credentials=_credentials(wanted.credentials))
    with ThreadPoolExecutor(1, thread_name_prefix="import") as pool:
        source = pool.submit(asyncio.run, _compile(document, options, (*egress_allow, *permitted))).result()
    if not source.compilation.operations:
        reasons = dict.fromkeys(reason for one in source.report.operations for reason in one.reasons)
        raise InvalidDocument(f"{document.place}: no operation became a tool: {'; '.join(reasons) or 'none selected'}")
    levels = _levels(wanted.safety, source.compilation.operations)
    tenants = None if wanted.tenants is None else read_tenants(wanted.tenants)
    # the servers of a fetched document are not the choice of the program
    if document.url is None:  # guard: code-import-servers
        origins = (one.plan.origin for one in source.compilation.operations)
        permitted += [address for origin in origins if (address := loopback_address(origin)) is not None]
    return ImportedDocument(
        registrations=tuple(
            _registration(source, one, levels.get(one.identity), tenants) for one in source.compilation.operations
        ),
        report=source.report,
        reachable=tuple(dict.fromkeys(permitted)),
    )


async def _compile(document: LocalDocument, options: LocalOptions, egress_allow: tuple[str, ...]) -> LocalSource:
    try:
        async with UpstreamClient(egress_allow=egress_allow) as upstream:
            (source,) = await compile_all([document], options, upstream)
            return source
    except BaseExceptionGroup as group:  # of the one compilation
        error = group.exceptions[0]
        if isinstance(error, GatewayError):
            raise error from None
        raise


def _locate(wanted: CodeImport) -> LocalDocument:
    """Return the document by its content, or by its URL."""
    given = wanted.document
    make = partial(LocalDocument, name=wanted.name, prefix=wanted.prefix, base_url=wanted.base_url)
    if isinstance(given, str):
        if given.lower().startswith(("http://", "https://")):
            return make(place=given, url=given)
        is_text = "\n" in given or given.lstrip().startswith("{")
        given = given.encode("utf-8", "surrogatepass") if is_text else Path(given)
    place = str(given) if isinstance(given, Path) else wanted.name
    match given:
        case bytes():
            content = given
        case Path():
            content = _read(given)
        case Mapping():
            content = _encode(given, place)
        case _:
            raise BadInput(f"{place}: a document is an object, its text, the path of its file, or a URL")
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DocumentTooLarge(f"{place}: the document has more than {MAX_DOCUMENT_BYTES} bytes")
    return make(place=place, content=content)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: the document cannot be read: {error.strerror or error}") from None


def _encode(document: Mapping[str, Any], place: str) -> bytes:
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{place}: the document is not a JSON object: {error}") from None


def _rules(operations: Collection[str] | None) -> tuple[OperationRule, ...]:
    """Return the rules of patterns of operationIds, or of `METHOD /path`."""
    if isinstance(operations, str):
        raise BadInput("operations must be a list of operationIds or of `METHOD /path`")
    rules: list[OperationRule] = []
    for pattern in operations or ():
        method, space, path = pattern.partition(" ")
        rules.append(
            OperationRule(methods=(method,), paths=(path,)) if space else OperationRule(operation_ids=(pattern,))
        )
    return tuple(rules)


def _credentials(given: Mapping[str, Secret]) -> Mapping[str, Credential]:
    return {scheme: _credential(scheme, secret) for scheme, secret in given.items()}


def _credential(scheme: str, secret: Secret) -> Credential:
    match cast("object", secret):
        case str() as value:
            return Credential(value=value)
        case (str() as username, str() as value):
            return Credential(username=username, value=value)
        case _:  # the message does not repeat what may be a secret
            raise BadInput(f"the credential of {scheme} must be a string, or a pair of strings: name and secret")


def _levels(given: SafetyLevels | None, operations: Collection[CompiledOperation]) -> Mapping[str, Safety]:
    """Return the declared levels by identity of the operation.

    Raises:
        BadInput: a name is that of no operation.
        DefinitionInvalid: there is no such level.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys((one.identity for one in operations), read_level(given))
    named = {name: one.identity for one in operations for name in (one.operation_id, one.tool, one.identity) if name}
    unknown = [name for name in given if name not in named]
    if unknown:
        known = ", ".join(sorted(one.tool for one in operations)[:50])
        raise BadInput(f"safety: no imported operation is called {unknown[0]!r}; imported: {known}")
    return {named[name]: read_level(level) for name, level in given.items()}


def _registration(
    source: LocalSource, compiled: CompiledOperation, level: Safety | None, tenants: frozenset[str] | None
) -> Registration:
    reason = f"its method is {compiled.method}" if level is None else "declared at its import"
    return Registration(
        primitive=PythonPrimitive(
            family=Family.TOOL,
            name=compiled.tool,
            definition=_full_definition(compiled),
            safety=level or compiled.safety,
            safety_reasons=(reason,),
            tenants=tenants,
        ),
        handler=CodeOperation(source=source.id, plan=msgspec.json.encode(compiled.plan), given=source.credentials),
    )


def _full_definition(compiled: CompiledOperation) -> bytes:
    """Return the definition with the full input schema: no query tool would show what a shortened one omits."""
    if compiled.input_schema is None:
        return compiled.definition
    members = msgspec.json.decode(compiled.definition, type=dict[str, msgspec.Raw])
    meta = msgspec.json.decode(members.pop("_meta", b"{}"), type=dict[str, msgspec.Raw])
    meta.pop(FULL_INPUT_META, None)
    described: str = msgspec.json.decode(members["description"], type=str)
    members["description"] = msgspec.Raw(msgspec.json.encode(described.rpartition("\n\n")[0]))  # its end is a note
    members["inputSchema"] = msgspec.Raw(compiled.input_schema)
    return msgspec.json.encode(members | ({"_meta": meta} if meta else {}))
