"""Handlers whose call is nothing but their arguments: what is confirmed, approved and recorded is definition and
arguments, and what happens is some work of ours."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from gateway.domain.http.requests import Credential
from gateway.errors import ArgumentsInvalid, HandlerFailed
from gateway.handlers.interfaces import Call, Prepared
from gateway.handlers.previews.requests import escape, finish, show_json
from gateway.handlers.redaction.redaction import Redaction

_LONGEST_SUMMARY = 500
_Answer = TypeVar("_Answer")
_Answer_co = TypeVar("_Answer_co", covariant=True)

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSubject:
    """The primitive that a handler stands behind: its name, and its definition and handler as they are stored."""

    name: str
    definition: bytes
    handler: bytes = b""


class Action(Protocol[_Answer_co]):
    """What is done with the arguments of one call."""

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Answer_co:
        """The answer.

        Raises:
            CallError, TemplateFailed, UpstreamError: there is none.
            InputRequired: the client has to answer first.
        """
        ...


class ActionPreview(Protocol):
    """Requests that a unit of work will make, as far as they are known in advance."""

    def show(self, arguments: Mapping[str, object]) -> str:
        """All of it, in lines."""
        ...

    async def credentials(self) -> tuple[Credential, ...]:
        """The stored credentials that it needs, or CredentialMissing."""
        ...


class LocalHandler(Generic[_Answer]):
    """A handler that does some work; `outline` adds to its preview the parts that are independent of the arguments."""

    def __init__(self, subject: HandlerSubject, work: Action[_Answer], *, outline: ActionPreview | None = None) -> None:
        self._subject = subject
        self._work = work
        self._outline = outline

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as they are: null is a value."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """The call that these arguments make."""
        return prepared(self._subject, arguments)

    async def preview(self, prepared: Prepared) -> str:
        """The name and the arguments, and what is done outside; see the port."""
        text = f"{escape(self._subject.name)} {show_json(_encode(dict(prepared.arguments)))}"
        if self._outline is None:
            return text
        credentials = await self._outline.credentials()
        acts = self._outline.show(prepared.arguments)
        return await finish(f"{text}\n{acts}" if acts else text, Redaction(), credentials)

    async def run(self, prepared: Prepared, call: Call, /) -> _Answer:
        """Do the work."""
        return await self._work.run(prepared.arguments, call)


class UnavailableHandler:
    """A handler that cannot run, and why: what it refers to is gone, or its declaration is of another version."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as they are."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Refuse.

        Raises:
            HandlerFailed: always.
        """
        del arguments
        raise HandlerFailed(self._reason)

    async def preview(self, prepared: Prepared) -> str:
        """Refuse; see `prepare`."""
        raise HandlerFailed(self._reason)

    async def run(self, prepared: Prepared, call: Call, /) -> Any:
        """Refuse; see `prepare`."""
        raise HandlerFailed(self._reason)


def prepared(subject: HandlerSubject, arguments: Mapping[str, object]) -> Prepared:
    """The call of a handler without a request of its own: its digest is that of definition, handler and arguments."""
    try:
        canonical = _encode(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        raise ArgumentsInvalid("the arguments cannot be written as JSON") from None
    seen = hashlib.blake2b(digest_size=32)
    for part in (subject.definition, subject.handler, canonical):
        seen.update(len(part).to_bytes(8))
        seen.update(part)
    shown = canonical.decode()
    if len(shown) > _LONGEST_SUMMARY:
        shown = shown[: _LONGEST_SUMMARY - 1] + "…"
    return Prepared(digest=seen.digest(), named=f"{subject.name} {shown}", arguments=arguments)
