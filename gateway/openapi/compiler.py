"""The compiler from a document to its tools; the worker process calls it.

Each operation is compiled separately. An operation that cannot be compiled is skipped with a reason in the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.domain.http.plans import Location
from gateway.domain.json_access import Object, as_object, point
from gateway.domain.json_text import decode_json
from gateway.domain.sources import Compilation, CompiledOperation
from gateway.domain.tools import FIELDS
from gateway.domain.updates.import_reports import OperationReport
from gateway.errors import BadInput, Fault
from gateway.openapi.document.document import Document, read_document
from gateway.openapi.document.json_access import Unusable, list_at, object_at, quote_text
from gateway.openapi.document.references import References
from gateway.openapi.document.swagger2 import convert
from gateway.openapi.limits import MAX_LIST_BYTES
from gateway.openapi.operation.bodies import Bodies, Body
from gateway.openapi.operation.credential_needs import CredentialNeeds
from gateway.openapi.operation.descriptions import ReturnLines, describe_tool, title_of
from gateway.openapi.operation.example_checks import ExampleChecks
from gateway.openapi.operation.example_positions import ExamplePositions, Origin
from gateway.openapi.operation.input_schema import compose_input
from gateway.openapi.operation.names import ToolName, grants, is_respelled, name_tools
from gateway.openapi.operation.operations import Operation, list_operations
from gateway.openapi.operation.outputs import Outputs
from gateway.openapi.operation.parameters import Parameters
from gateway.openapi.operation.paths import read_template
from gateway.openapi.operation.plans import OperationParts, fit_parameters, plan_request, successes
from gateway.openapi.operation.security import Schemes
from gateway.openapi.operation.selection import OperationSelector
from gateway.openapi.operation.servers import Server, find_server, parse_server, replaced_server
from gateway.openapi.operation.tool_definition import (
    ListedTool,
    ToolText,
    define_within_budget,
    list_tags,
    safety_of,
    shrink_list,
)
from gateway.openapi.options import ImportOptions
from gateway.openapi.query.outline import Outline, Outlined, encode_outline, outline_document
from gateway.openapi.query.tools import DEFINITIONS, DETAILS
from gateway.openapi.report import report_import, report_operation
from gateway.openapi.review.text_findings import find_texts
from gateway.openapi.schema.components import Components
from gateway.openapi.schema.discriminators import Discriminators
from gateway.openapi.schema.patterns import Patterns
from gateway.openapi.schema.translation import SchemaDialect
from gateway.openapi.warnings import Warnings

_RESPELLED = "characters of its operationId that the name of a tool may not have are replaced"
_NO_OPERATION = "the document declares no operation under `paths`; the source has no tools"


def compile_document(
    raw: bytes | Mapping[str, object], options: ImportOptions, *, origin: Origin | None = None
) -> Compilation:
    """Compile a document to its tools and a report on each operation; `origin` names positions in its files.

    Raises:
        InvalidDocument: the document cannot be read as OpenAPI.
        DocumentTooLarge: the document exceeds a limit.
        BadInput: requests cannot be sent to the base URL.
    """
    base = _override(options.base_url)
    document = read_document(raw, url=options.document_url)
    return _Compiler(document, options, base, origin=origin).run()


def _override(url: str | None) -> Server | None:
    if url is None:
        return None
    try:
        return parse_server(url)
    except Unusable as unusable:
        faults = [Fault(pointer="/base_url", reason=unusable.reason)]
        raise BadInput(f"The base URL cannot be used: {unusable.reason}.", faults=faults) from unusable


class _Compiler:
    """One pass over one document."""

    def __init__(
        self, document: Document, options: ImportOptions, base: Server | None, *, origin: Origin | None
    ) -> None:
        references = References(document.root)
        is_swagger = document.dialect == (2, 0)
        self._document = document
        self._options = options
        self._base = base
        self._warnings = Warnings()
        self._root = convert(document.root, references, self._warnings) if is_swagger else document.root
        self._references = references
        dialect = SchemaDialect(
            references=references,
            warnings=self._warnings,
            patterns=Patterns(),
            subtypes=Discriminators(document.root, references),
            has_siblings=document.dialect >= (3, 1),
        )
        components = Components(dialect)
        self._components = components
        positions = ExamplePositions(document.root, self._root, references, origin=origin)
        self._examples = ExampleChecks(components, dialect.values, warnings=self._warnings, positions=positions)
        self._return_lines = ReturnLines(references)
        self._listed_tools: dict[str, ListedTool] = {}
        self._outputs = Outputs(references, dialect, positions) if options.output_schemas else None
        self._parameters = Parameters(references, components, dialect=document.dialect)
        self._bodies = Bodies(references, components, dialect=document.dialect)
        self._needs = CredentialNeeds()
        self._schemes = Schemes(self._root, references, document.identifiers if document.dialect >= (3, 2) else None)

    def run(self) -> Compilation:
        """Compile every selected operation."""
        operations = list_operations(self._root, self._references, self._warnings, dialect=self._document.dialect)
        names = self._name(operations)
        choice = OperationSelector(self._options.include, self._options.exclude)
        chosen: list[Operation] = []
        compiled: list[CompiledOperation] = []
        reports: list[OperationReport] = []
        room = MAX_LIST_BYTES
        for operation in operations:
            refusal = choice.refuse(operation)
            if refusal is not None:
                reports.append(report_operation(operation, tool=None, reasons=[refusal]))
                continue
            chosen.append(operation)
            try:
                if room <= 0:
                    raise Unusable(f"all tools together have more than {MAX_LIST_BYTES // 1024**2} MiB (the limit)")
                made, losses = self._compile(operation, names[operation.identity])
            except Unusable as unusable:
                reports.append(report_operation(operation, tool=None, reasons=[unusable.reason]))
            else:
                self._needs.add(made.plan.security)
                room -= len(made.definition) + len(made.input_schema or b"")
                compiled.append(made)
                reports.append(report_operation(operation, tool=made.tool, reasons=losses))
        self._components.forget_short_forms()
        compiled, reports = self._fit(compiled, reports)
        outline: Outline | None = None
        if self._options.outline:
            outline = self._outline(chosen, compiled, is_part=choice.has_exclusions)  # guard: chosen-outline
        findings = find_texts(self._document, compiled, outline)
        nothing = () if operations else (_NO_OPERATION,)
        warnings = (*nothing, *choice.warnings(), *self._warnings.texts())
        report = report_import(reports, self._listed(compiled), warnings, self._warnings.notes(), findings=findings)
        return Compilation(
            title=self._document.title,
            version=self._document.version,
            operations=tuple(compiled),
            report=replace(
                report,
                examples=self._examples.counts,
                response_examples=None if self._outputs is None else self._outputs.counts,
                credential_needs=self._needs.needs(),
                ways=self._needs.ways(self._schemes.accounts),
            ),
            scheme_names=self._schemes.names,
            outline=b"" if outline is None else encode_outline(outline),
        )

    def _fit(
        self, compiled: Sequence[CompiledOperation], reports: Sequence[OperationReport]
    ) -> tuple[list[CompiledOperation], list[OperationReport]]:
        """Shrink the tools to the budget of their list; add notes about omitted parts to the reports."""
        self._listed_tools.update(shrink_list(self._listed_tools))
        notes = {tool: listed.notes for tool, listed in self._listed_tools.items()}
        return (
            [
                made
                if (listed := self._listed_tools[made.tool]).definition is made.definition
                else replace(made, definition=listed.definition, input_schema=listed.input_schema)
                for made in compiled
            ],
            [replace(report, notes=found) if (found := notes.get(report.tool or "")) else report for report in reports],
        )

    def _name(self, operations: Sequence[Operation]) -> Mapping[str, ToolName]:
        """Name all operations, including those not selected, so that the selection does not change the name of
        a tool.
        """
        known = self._options.known_names
        hints = {item.identity: item.hints.name for item in operations if item.hints.name is not None}
        for identity in hints.keys() & known.keys():
            if not grants(known[identity], hints[identity], identity, prefix=self._options.prefix):
                hint = quote_text(hints[identity])
                kept = f"its tool keeps the name {known[identity]}; the document declares {hint}"
                self._warnings.note(identity, kept)
        return name_tools(operations, prefix=self._options.prefix, known=known, hints=hints)

    def _listed(self, compiled: Sequence[CompiledOperation]) -> Mapping[str, bytes]:
        """The definitions in `tools/list`, by tool name."""
        tools = {made.tool: made.definition for made in compiled} if self._options.is_listed else {}
        is_shortened = self._options.is_listed and any(made.input_schema is not None for made in compiled)
        details = {DETAILS: DEFINITIONS[DETAILS]} if is_shortened else {}
        return {**tools, **(DEFINITIONS if self._options.outline else details)}

    def _outline(
        self, operations: Sequence[Operation], compiled: Sequence[CompiledOperation], *, is_part: bool
    ) -> Outline:
        """The part of the document that the query tools read."""
        return outline_document(
            Outlined(
                document=self._document,
                root=self._root,
                references=self._references,
                operations=operations,
                is_part=is_part,
                inputs={made.identity: _input_schema(made) for made in compiled},
                base_url=self._options.base_url,
                document_url=self._options.document_url,
            )
        )

    def _compile(self, operation: Operation, name: ToolName) -> tuple[CompiledOperation, list[str]]:
        if operation.refusal is not None:
            raise Unusable(operation.refusal)
        parts, losses = self._read(operation)
        plan, arguments = plan_request(operation, parts, timeout_s=self._options.timeout_s)
        for argument in arguments:
            if argument.original is not None:
                what = f"the argument {argument.name} is the parameter {quote_text(argument.original)}"
                self._warnings.note(operation.identity, what)
        if any(argument.name == FIELDS for argument in arguments):
            self._warnings.add(operation.identity, f"its argument {FIELDS} is its own and selects no parts of results")
        schema = compose_input(arguments, self._components, self._examples)
        if name.reason is not None:
            self._warnings.note(operation.identity, f"its tool is named {name.text}: the plain name {name.reason}")
        elif is_respelled(operation.hints.name or operation.operation_id):
            self._warnings.note(operation.identity, _RESPELLED)
        output = self._output(operation, parts)
        chosen = [body.media_type for body in (plan.body, *plan.bodies) if body is not None]
        description = describe_tool(operation, arguments, chosen, self._returns_line(operation))
        text = ToolText(name=name.text, title=title_of(operation, description), description=description)
        listed = self._listed_tools[name.text] = define_within_budget(
            text, operation, schema, self._components, output=output
        )
        made = CompiledOperation(
            identity=operation.identity,
            method=operation.method,
            path=operation.path,
            operation_id=operation.operation_id,
            tool=name.text,
            definition=listed.definition,
            input_schema=listed.input_schema,
            plan=plan,
            safety=safety_of(operation),
            tags=list_tags(operation),
        )
        return made, [*losses, *schema.losses]

    def _read(self, operation: Operation) -> tuple[OperationParts, list[str]]:
        levels = {
            point("paths", operation.path): list_at(operation.item, "parameters"),
            operation.where: list_at(operation.node, "parameters"),
        }
        declared = self._parameters.merge(levels)
        filled = self._options.parameters
        names = {name for location, name in (one.key for one in declared.parameters) if location is Location.PATH}
        template = read_template(operation.path, names).fill(filled)
        merged = declared.without(filled)
        fitted = fit_parameters(template, merged.parameters)
        body = self._bodies.plan(operation.node, operation.where)
        server = self._server(operation)
        security = self._schemes.plan(operation.node, server, merged.credentials)
        security = security.filled(filled, template)
        for name in merged.credentials:
            what = f"the header {quote_text(name)} is filled from a stored credential, not an argument"
            self._warnings.note(operation.identity, what)
        for note in (*merged.notes, *fitted.notes):
            self._warnings.note(operation.identity, note)
        parts = OperationParts(
            server=server,
            template=template,
            parameters=fitted.parameters,
            body=body if isinstance(body, Body) else None,
            security=security,
            answers=self._success_responses(operation),
        )
        unsent = [body] if isinstance(body, str) else body.losses if body is not None else ()
        return parts, [*merged.losses, *fitted.losses, *unsent, *security.losses]

    def _output(self, operation: Operation, parts: OperationParts) -> bytes | None:
        """The output schema; None if the option is off, a success response is unreadable, or `compose` returns None."""
        declared = list(successes(object_at(operation.node, "responses")))
        if self._outputs is None or len(declared) != len(parts.answers):
            return None
        return self._outputs.compose(parts.answers, f"{operation.where}/responses")

    def _server(self, operation: Operation) -> Server:
        levels = [operation.node, operation.item, self._root]
        if self._base is not None:
            replaced = replaced_server(levels, self._base)
            if replaced is not None and replaced.loses_path:
                self._warnings.add("", replaced.text)
            elif replaced is not None:
                self._warnings.note(operation.identity, replaced.text)
            return self._base
        return find_server(levels, document_url=self._options.document_url)

    def _returns_line(self, operation: Operation) -> str:
        """A line about the first readable success response."""
        responses = object_at(operation.node, "responses")
        for status in sorted(responses, key=lambda status: status == "default"):
            if status[:1] == "2" or status == "default":
                try:
                    answer = self._references.follow(responses[status], "a response")
                except Unusable:
                    continue
                return self._return_lines.describe(status, answer)
        return ""

    def _success_responses(self, operation: Operation) -> Sequence[Object]:
        """The declared success responses; one that cannot be read causes a warning."""
        found: list[Object] = []
        for node in successes(object_at(operation.node, "responses")):
            try:
                found.append(self._references.follow(node, "a response"))
            except Unusable as unusable:
                self._warnings.add(f"{operation.where}/responses", f"{unusable.reason}; any response is accepted")
        return found


def _input_schema(made: CompiledOperation) -> Object:
    """The full input schema of a compiled operation."""
    if made.input_schema is not None:
        return as_object(decode_json(made.input_schema)) or {}
    return object_at(decode_json(made.definition), "inputSchema")
