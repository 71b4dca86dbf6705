"""Handlers that run an action in this replica, instead of sending one prepared request.

The digest of a call covers the primitive's definition and handler, and the arguments.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId
from gateway.errors import ArgumentsInvalid, HandlerFailed
from gateway.handlers.interfaces import Call, Prepared
from gateway.handlers.limits import MAX_SUMMARY_LENGTH
from gateway.handlers.previews.requests import escape, finish, show_json
from gateway.handlers.redaction.redaction import Redaction

_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSubject:
    """The primitive of a handler: its name, and its definition and handler as they are stored."""

    name: str
    definition: bytes
    handler: bytes = b""


class Action(Protocol[_Result_co]):
    """The work of a handler for the arguments of one call."""

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result_co:
        """Run the action and return its result.

        Raises:
            CallError, NotFound, TemplateFailed, UpstreamError: the action failed.
            InputRequired: the action needs a response from the client first.
        """
        ...


class ActionPreview(Protocol):
    """The requests that an action will send, as far as they are known in advance."""

    @property
    def tenant(self) -> TenantId:
        """The tenant of the action."""
        ...

    def show(self, arguments: Mapping[str, object]) -> str:
        """Return the requests as lines."""
        ...

    async def credentials(self) -> tuple[Credential, ...]:
        """Return the stored credentials of requests outside branches, or raise CredentialMissing."""
        ...


class LocalHandler(Generic[_Result]):
    """A handler that runs an action; `outline` adds the action's requests to the preview."""

    def __init__(self, subject: HandlerSubject, work: Action[_Result], *, outline: ActionPreview | None = None) -> None:
        self._subject = subject
        self._work = work
        self._outline = outline

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments unchanged; an argument that is null is not treated as absent."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the call for these arguments."""
        return build_prepared_call(self._subject, arguments)

    async def require_credentials(self) -> None:
        """Check the credentials of requests outside branches; see `NeedsCredentials`."""
        if self._outline is not None:
            await self._outline.credentials()

    async def preview(self, prepared: Prepared) -> str:
        """Show the name, the arguments, and the requests known in advance; see `interfaces.Handler`."""
        text = f"{escape(self._subject.name)} {show_json(_encode(dict(prepared.arguments)))}"
        if self._outline is None:
            return text
        credentials = await self._outline.credentials()
        acts = self._outline.show(prepared.arguments)
        return await finish(self._outline.tenant, f"{text}\n{acts}" if acts else text, Redaction(), credentials)

    async def run(self, prepared: Prepared, call: Call, /) -> _Result:
        """Run the action."""
        return await self._work.run(prepared.arguments, call)


class UnavailableHandler:
    """A handler that rejects every call with a reason, such as a declaration of a newer version."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments unchanged."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Refuse the call.

        Raises:
            HandlerFailed: always.
        """
        del arguments
        raise HandlerFailed(self._reason)

    async def preview(self, prepared: Prepared) -> str:
        """Refuse the call; see `prepare`."""
        raise HandlerFailed(self._reason)

    async def run(self, prepared: Prepared, call: Call, /) -> Any:
        """Refuse the call; see `prepare`."""
        raise HandlerFailed(self._reason)


def build_prepared_call(subject: HandlerSubject, arguments: Mapping[str, object]) -> Prepared:
    """Return a call of an action; its digest covers definition, handler and arguments.

    Raises:
        ArgumentsInvalid: the arguments cannot be written as JSON.
    """
    try:
        canonical = _encode(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        raise ArgumentsInvalid("the arguments cannot be written as JSON") from None
    seen = hashlib.blake2b(digest_size=32)
    for part in (subject.definition, subject.handler, canonical):
        seen.update(len(part).to_bytes(8))
        seen.update(part)
    shown = canonical.decode()
    if len(shown) > MAX_SUMMARY_LENGTH:
        shown = shown[: MAX_SUMMARY_LENGTH - 1] + "…"
    return Prepared(digest=seen.digest(), named=f"{subject.name} {shown}", arguments=arguments)
