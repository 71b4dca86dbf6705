"""Lookup of the functions, and of the operations of documents, that operators registered in Python."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.primitives import Family
from gateway.handlers.python.context import Context
from gateway.handlers.python.limits import TIMEOUT_S
from gateway.handlers.python.signatures import CompletionFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonHandler:
    """The function of one primitive; `is_async` is True if it runs on the event loop, otherwise it runs in a thread.

    `complete` completes the arguments of a prompt or the variables of a template. `timeout_s` limits both
    functions; a completion has at most ten seconds.
    """

    function: Callable[[Context], object]
    is_async: bool
    timeout_s: float = TIMEOUT_S
    complete: CompletionFunction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOperation:
    """An operation of a document that a program imported: its request plan, and the program's credentials by scheme.

    It is its own `SecretReader`: calls of every tenant send the program's credentials.
    """

    source: SourceId
    plan: bytes
    given: Mapping[str, Credential] = field(repr=False)
    complete: CompletionFunction | None = None

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """Return the program's credentials by scheme."""
        del tenant, source
        return self.given

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """Return None: only declared handlers name credentials."""
        del tenant, name
        return None


class PythonHandlers(Protocol):
    """The primitives registered in Python."""

    def find(self, family: Family, name: str, slug: str) -> PythonHandler | CodeOperation | None:
        """Return the function or operation of a tenant's primitive; None if there is none.

        `name` of a resource is its URI or URI template.
        """
        ...
