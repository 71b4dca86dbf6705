"""Messages between the replica of a request to a live source and the replica that holds the attachment."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed, UpstreamSuspended
from gateway.domain.sessions import SessionOwner, UpstreamSessionKey
from gateway.errors import (
    CapabilityMissing,
    ClientSilent,
    EgressDenied,
    GatewayError,
    LimitExceeded,
    NotFound,
    UpstreamAnswerTooLarge,
    UpstreamBusy,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.upstream.live.interfaces import LiveMethod

_FORWARDED: Final[Mapping[str, type[GatewayError]]] = {
    kind.code: kind
    for kind in (
        LiveSourceDetached,
        ClientSilent,
        EgressDenied,
        LimitExceeded,
        NotFound,
        UpstreamAnswerTooLarge,
        UpstreamBusy,
        UpstreamSuspended,
        UpstreamTimeout,
        UpstreamUnreachable,
    )
}


class ForwardedError(msgspec.Struct, frozen=True, kw_only=True):
    """An error of the other replica: its code and message."""

    code: str
    message: str
    capability: str = ""
    retry_after_s: float | None = None

    @classmethod
    def of(cls, error: GatewayError) -> "ForwardedError":
        """Return an error in the form of a message."""
        capability = error.capability if isinstance(error, CapabilityMissing) else ""
        return cls(code=error.code, message=error.message, capability=capability, retry_after_s=error.retry_after_s)

    def error(self) -> GatewayError:
        """Recreate the error; an error of another kind becomes `LiveSourceFailed`."""
        if self.capability:
            return CapabilityMissing(self.message, capability=self.capability)
        return _FORWARDED.get(self.code, LiveSourceFailed)(self.message, retry_after_s=self.retry_after_s)


class LiveMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message about one request; `sender` is the replica that sends it.

    JSON values are sent as text, because MessagePack limits integers to 64 bits.
    """

    request: str
    sender: str


class Begin(LiveMessage, frozen=True, kw_only=True, tag=True):
    """To the holder: run the request."""

    tenant: TenantId
    source: LiveSourceId
    method: LiveMethod
    params: bytes
    abilities: Sequence[str]
    """The capabilities of the client; see `LiveClient.can`."""
    owner: SessionOwner | None = None
    """The owner of the session at the source; None in messages of an earlier release."""


class Cancel(LiveMessage, frozen=True, kw_only=True, tag=True):
    """To the holder: the client no longer waits for the request."""


class Answer(LiveMessage, frozen=True, kw_only=True, tag=True):
    """To the holder: the client's response to a request."""

    question: int
    result: bytes | None = None
    failure: ForwardedError | None = None


class ProgressReport(LiveMessage, frozen=True, kw_only=True, tag=True):
    """From the holder: a progress notification."""

    progress: float
    total: float | None = None
    message: str | None = None


class Log(LiveMessage, frozen=True, kw_only=True, tag=True):
    """From the holder: a log message."""

    level: str
    data: bytes
    logger: str | None = None


class Ask(LiveMessage, frozen=True, kw_only=True, tag=True):
    """From the holder: a request to the client."""

    question: int
    method: str
    params: bytes


class Done(LiveMessage, frozen=True, kw_only=True, tag=True):
    """From the holder: the end of the request."""

    result: bytes | None = None
    failure: ForwardedError | None = None


class OutsideMessage(LiveMessage, frozen=True, kw_only=True, tag=True):
    """To a replica that runs a request in a caller's session: a message of the server, received on its GET stream.

    `request` is empty: the server does not name the request.
    """

    key: UpstreamSessionKey
    message: bytes


AnyMessage = Begin | Cancel | Answer | ProgressReport | Log | Ask | Done | OutsideMessage


def write(value: object) -> bytes:
    """Return a JSON value as text.

    Raises:
        LiveSourceFailed: the value is not JSON.
    """
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        raise LiveSourceFailed("a value of the live source cannot be written as JSON") from None


def read_members(text: bytes | None) -> dict[str, Any]:
    """Return a JSON object from its JSON; without JSON, an empty one."""
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return found


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(AnyMessage).decode
