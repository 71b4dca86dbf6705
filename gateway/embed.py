"""The Python API: a gateway inside another program, with functions of that program as tools, resources and prompts."""

import sys
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, Unpack

import anyio

from gateway.app.asgi_app import GatewayApp
from gateway.app.local.documents import LOCAL
from gateway.app.local.programs import announce_access, level_of, local_settings, open_code_server, serve_code
from gateway.app.local.server import UnrecordedCalls
from gateway.app.python.decorators import Decorators
from gateway.app.python.imports import CodeImport, Document, SafetyLevels, Secret, import_document
from gateway.app.python.plugins import load_extras, serve_registry
from gateway.app.python.primitives import (
    Extra,
    ExtraPrompt,
    ExtraResource,
    ExtraResourceTemplate,
    ExtraTool,
    to_registration,
)
from gateway.app.python.registrations import Registered, Tenants
from gateway.app.server.running import Ready, Running
from gateway.app.server.serve import serve
from gateway.definitions.contract.metadata import Level
from gateway.definitions.contract.prompts import PromptDefinition
from gateway.definitions.contract.resources import ResourceDefinition, ResourceTemplateDefinition
from gateway.definitions.contract.tool_registry import ToolRegistry
from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.definitions.typed.definitions import PromptShape, ResourceShape, TemplateShape, ToolShape
from gateway.definitions.typed.schemas import AnySchema, ObjectSchema, Schema
from gateway.domain.primitives import Family, OwnedName
from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.import_reports import ImportReport
from gateway.errors import (
    BadInput,
    DefinitionInvalid,
    DuplicateToolError,
    HandlerInvalid,
    InvalidDocument,
    NameTaken,
    PromptValidationError,
    ResourceValidationError,
    ToolValidationError,
)
from gateway.handlers.python import results
from gateway.handlers.python.context import Context
from gateway.handlers.python.results import audio, embed, error, image, success, text
from gateway.handlers.python.signatures import (
    Completing,
    CompletionFunction,
    PromptFunction,
    ResourceFunction,
    ToolFunction,
)
from gateway.protocol.stdio.memory_client import MemoryClient, MemoryClientOptions, connect
from gateway.protocol.stdio.streams import claim_streams
from gateway.settings import Settings, load_settings
from gateway.telemetry.logs import configure_program_logging

__all__ = (
    "AnySchema",
    "BadInput",
    "Completing",
    "CompletionFunction",
    "Completions",
    "Contents",
    "Context",
    "DefinitionInvalid",
    "DuplicateToolError",
    "ExtraPrompt",
    "ExtraResource",
    "ExtraResourceTemplate",
    "ExtraTool",
    "Family",
    "Gateway",
    "HandlerInvalid",
    "ImportReport",
    "InvalidDocument",
    "MemoryClient",
    "Messages",
    "NameTaken",
    "ObjectSchema",
    "OwnedName",
    "PromptDefinition",
    "PromptFunction",
    "PromptShape",
    "PromptValidationError",
    "Registered",
    "ResourceDefinition",
    "ResourceFunction",
    "ResourceShape",
    "ResourceTemplateDefinition",
    "ResourceValidationError",
    "Result",
    "Running",
    "Safety",
    "Schema",
    "Settings",
    "TemplateShape",
    "ToolDefinition",
    "ToolFunction",
    "ToolRegistry",
    "ToolShape",
    "ToolValidationError",
    "audio",
    "embed",
    "error",
    "image",
    "load_settings",
    "success",
    "text",
    "validate_tool_definition",
)

json = results.json
"""See `gateway.handlers.python.results`. Not in `__all__`, so a star import does not replace the module `json`.
"""


class Gateway(Decorators):
    """A gateway and the primitives that are registered with it.

    Primitives can be registered while the gateway serves; open connections receive the change.

    Without `settings`, the environment is read. Extras that the settings name are registered first, then the extras
    that are passed here, then the tools of `registry`. A name that is already registered raises an error. A tool that
    is added to the registry later is registered at once, or its `register` raises the error of `register_tool`.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        registry: ToolRegistry | None = None,
        extra_tools: Iterable[ExtraTool] = (),
        extra_resources: Iterable[ExtraResource | ExtraResourceTemplate] = (),
        extra_prompts: Iterable[ExtraPrompt] = (),
    ) -> None:
        self.settings = load_settings() if settings is None else settings
        self._code = load_extras(self.settings)
        self._reachable: tuple[str, ...] = ()
        for extra in (*extra_tools, *extra_resources, *extra_prompts):
            self._register(extra)
        if registry is not None:
            serve_registry(registry, self._code)

    def register_tool(
        self,
        name: str,
        definition: ToolDefinition | ToolShape,
        handler: ToolFunction,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Add a tool, for all tenants or for those with these slugs.

        While the gateway serves, the name is looked up in the tenants' catalogs. The lookup blocks, so register from a
        thread when many tools are added at once. A tenant's own tool hides the added one; the return value names such
        tenants.

        Raises:
            ToolValidationError: the definition violates the contract, or contains another name.
            HandlerInvalid: the handler is not a function of one argument.
            DefinitionInvalid: `safety` or `tenants` is invalid.
            DuplicateToolError: a tool of this name is already registered for one of the tenants, or each of `tenants`
                has its own tool of this name. Existing tools are unchanged.
            NameTaken: the name belongs to one of the gateway's own tools.
            Unavailable: the tenants' catalogs cannot be read; nothing was registered.
        """
        return self._register(
            ExtraTool(name=name, definition=definition, handler=handler, safety=safety, tenants=tenants)
        )

    def register_resource(
        self,
        uri: str,
        definition: ResourceDefinition | ResourceShape,
        handler: ResourceFunction,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Add a resource at one URI.

        Raises:
            ResourceValidationError: the definition violates the contract, or contains another URI.
            HandlerInvalid, DefinitionInvalid, NameTaken, Unavailable: as in `register_tool`.
        """
        return self._register(
            ExtraResource(uri=uri, definition=definition, handler=handler, safety=safety, tenants=tenants)
        )

    def register_resource_template(
        self,
        uri_template: str,
        definition: ResourceTemplateDefinition | TemplateShape,
        handler: ResourceFunction,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Add resources at all URIs that match a template. `context.arguments` of the handler contains its variables.

        Raises:
            ResourceValidationError: the definition violates the contract, or contains another template.
            HandlerInvalid, DefinitionInvalid, NameTaken, Unavailable: as in `register_tool`.
        """
        return self._register(
            ExtraResourceTemplate(
                uri_template=uri_template,
                definition=definition,
                handler=handler,
                complete=complete,
                safety=safety,
                tenants=tenants,
            )
        )

    def register_prompt(
        self,
        name: str,
        definition: PromptDefinition | PromptShape,
        handler: PromptFunction,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Add a prompt.

        Raises:
            PromptValidationError: the definition violates the contract, or contains another name.
            HandlerInvalid, DefinitionInvalid, NameTaken, Unavailable: as in `register_tool`.
        """
        return self._register(
            ExtraPrompt(
                name=name, definition=definition, handler=handler, complete=complete, safety=safety, tenants=tenants
            )
        )

    def import_openapi(  # noqa: PLR0913  # each is a member of the import
        self,
        name: str,
        document: Document,
        *,
        credentials: Mapping[str, Secret] | None = None,
        operations: Collection[str] | None = None,
        safety: SafetyLevels | None = None,
        base_url: str | None = None,
        prefix: str | None = None,
        tenants: Tenants = None,
    ) -> ImportReport:
        """Add the operations of an OpenAPI document as tools, compiled as for a source; all of them or none.

        `document` is an object, a text, a path or a URL. `credentials` are the secrets of its security schemes, which
        are sent in calls of all tenants and never logged. `operations` selects by patterns of operationIds or of
        `METHOD /path`. `safety` replaces the levels that follow from the methods. The call blocks while a worker
        process compiles the document.

        Raises:
            InvalidDocument, DocumentTooLarge: the document cannot be read, or no operation is selected.
            BadInput: the document cannot be found, or a credential or a level belongs to nothing in it.
            DuplicateToolError, NameTaken: a name is taken; pass a `prefix`.
            DefinitionInvalid: a level or `tenants` is invalid.
            UpstreamError, Unavailable: the document cannot be fetched, or the names cannot be looked up.
        """
        wanted = CodeImport(
            name=name,
            document=document,
            credentials=credentials or {},
            operations=operations,
            safety=safety,
            base_url=base_url,
            prefix=prefix,
            tenants=tenants,
        )
        configure_program_logging(level=level_of(self.settings))
        imported = import_document(wanted, egress_allow=self.settings.egress_allow)
        self._code.add(*imported.registrations)
        self._reachable += imported.reachable
        return imported.report

    def unregister(self, name: str, *, family: Family | None = None, tenants: Tenants = None) -> None:
        """Remove the tool or prompt of this name, the resource at this URI, or the resource template with this text.

        Raises:
            NotFound: no registration matches.
            Conflict: several registrations match; pass `family`, or the `tenants` of the registration, to select one.
        """
        self._code.remove(name, family, tenants=tenants)

    def unregister_tool(self, name: str, *, tenants: Tenants = None) -> None:
        """Remove the tool of this name; see `unregister`."""
        self.unregister(name, family=Family.TOOL, tenants=tenants)

    def unregister_resource(self, uri: str, *, tenants: Tenants = None) -> None:
        """Remove the resource at this URI; see `unregister`."""
        self.unregister(uri, family=Family.RESOURCE, tenants=tenants)

    def unregister_resource_template(self, uri_template: str, *, tenants: Tenants = None) -> None:
        """Remove the resource template with this text; see `unregister`."""
        self.unregister(uri_template, family=Family.TEMPLATE, tenants=tenants)

    def unregister_prompt(self, name: str, *, tenants: Tenants = None) -> None:
        """Remove the prompt of this name; see `unregister`."""
        self.unregister(name, family=Family.PROMPT, tenants=tenants)

    @property
    def hidden(self) -> Sequence[OwnedName]:
        """The tenants' names that hide primitives of this gateway, from the last lookup.

        A lookup runs at each start, and after each registration while the gateway serves. Empty before the first start.
        """
        return self._code.hidden

    def asgi(self) -> GatewayApp:
        """Return the gateway as an ASGI application for another server, which must send lifespan events."""
        return GatewayApp(self.settings, self._code)

    async def serve(self, *, ready: Ready | None = None) -> None:
        """Serve on the configured host and port until SIGTERM or SIGINT; call `ready` once the gateway responds.

        Raises:
            BrokenSetting: the configuration does not allow a start.
            EmbeddedServerFailed: an embedded server did not start.
            DatabaseUnavailable, RedisUnavailable: a server does not respond or cannot be used.
        """
        await serve(self.settings, ready=ready, code=self._code)

    @asynccontextmanager
    async def client(
        self, *, tenant: str = LOCAL, **options: Unpack[MemoryClientOptions]
    ) -> AsyncGenerator[MemoryClient]:
        """Yield a connected client of the SDK for tests: no PostgreSQL, no Redis, no sockets.

        It calls what this gateway has registered for the tenant with this slug, through the validation, policy and
        rendering of a call. Changing calls are allowed and deleting ones confirmed through the client, unless the
        settings have decisions for new tenants. Nothing is recorded. `options` are those of `mcp.Client`.
        """
        raised: BaseException | None = None
        opened = open_code_server(self._code, self.settings, UnrecordedCalls(), slug=tenant, reachable=self._reachable)
        try:
            async with opened as server, connect(server.serve, **options) as client:
                try:
                    yield client
                except BaseException as error:
                    raised = error
                    raise
        except BaseExceptionGroup:
            if raised is not None:  # the SDK's task groups wrap it, but a test expects its own failure
                raise raised from None
            raise

    def run(self, *, transport: Literal["http", "stdio"] = "http") -> None:
        """Serve from a program that has no running event loop, until SIGTERM or SIGINT.

        Over HTTP, see `serve`. Without configured servers and on a loopback address, the gateway starts its own, and
        prints the MCP URL and a key of the tenant `local`, which it creates; both are the same at the next start.
        On standard streams, it serves what is registered to one client, without PostgreSQL, Redis and listeners.

        Raises:
            BrokenSetting, EmbeddedServerFailed, DatabaseUnavailable, RedisUnavailable: as for `serve`.
        """
        if transport == "stdio":
            claimed = claim_streams()
            anyio.run(partial(serve_code, claimed, self._code, self.settings, reachable=self._reachable))
            return
        settings = local_settings(self.settings, self._reachable)
        ready = None if settings is None else announce_access
        served = partial(serve, settings or self.settings, ready=ready, code=self._code)
        anyio.run(served, backend_options={"use_uvloop": sys.platform != "win32"})

    def _register(self, extra: Extra) -> Registered:
        return self._code.add(to_registration(extra))
