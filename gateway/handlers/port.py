"""What a handler is to the stations: prepare first, run later, with everything that judges a call in between."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.requests import Credential, UpstreamAnswer, UpstreamRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call, final but not yet made: what will be sent, its digest, and one line that a person can read."""

    request: UpstreamRequest
    digest: bytes
    summary: str


class Handler(Protocol):
    """The object that runs a primitive."""

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as they are meant, before they are validated: what counts as absent is left out."""
        ...

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """The call that these valid arguments make.

        Raises:
            ArgumentsInvalid: they cannot be put on the wire.
        """
        ...

    async def run(self, prepared: Prepared) -> UpstreamAnswer:
        """Make the call.

        Raises:
            UpstreamError: there is no answer to pass on.
        """
        ...


class SecretReader(Protocol):
    """Where the stored credentials of a source are read."""

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme."""
        ...
