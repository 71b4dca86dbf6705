"""Parts of registries for tests that need no database."""

from collections.abc import Mapping

from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.handlers.binding import Binder
from gateway.handlers.factory import HandlerDependencies
from gateway.handlers.python.registry import PythonHandlers
from gateway.registry.cursors import Cursors
from gateway.upstream.client import UpstreamClient

CURSORS = Cursors(b"k" * 32)


class NoSecrets:
    """A reader that has none."""

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        return {}

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        return None


def binder(code: PythonHandlers | None = None) -> Binder:
    """A binder without upstreams and secrets."""
    return Binder(UpstreamClient(), NoSecrets(), Validators(), HandlerDependencies(code=code))
