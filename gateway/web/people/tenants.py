"""Lookup of the tenant in a URL, for requests without a credential. Missing tenants count as failed authentications."""

from starlette.requests import Request

from gateway.domain.tenancy.issuers import Issuer, TenantIssuers
from gateway.errors import LimitExceeded, NotFound
from gateway.identity.authenticator import Authenticator
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.people import IssuerDirectory
from gateway.web.authentication import address_of, target_of
from gateway.web.people.limits import PAGE_BURST_S


class TenantLookup:
    """Finds tenants with an issuer by slug, with a rate limit per address and per tenant.

    Each replica counts separately. `public_url` is the gateway's own URL, if it is configured.
    """

    def __init__(
        self, credentials: Authenticator, directory: IssuerDirectory, *, public_url: str | None, rate: float
    ) -> None:
        self._credentials = credentials
        self.refusals = credentials.refusals
        """The audit trail of refused requests, for all pages of people."""
        self._directory = directory
        self._public_url = public_url
        self._addresses = TokenBuckets(rate=rate, burst=rate * PAGE_BURST_S)
        self._tenants = TokenBuckets(rate=rate * _TENANT, burst=rate * _TENANT * PAGE_BURST_S)

    def origin_of(self, request: Request) -> str:
        """Return the URL of the gateway as its clients see it, without the path of a tenant."""
        return self._public_url or target_of(request.scope).base

    async def find(self, request: Request) -> tuple[str, TenantIssuers]:
        """Return the slug in the path and the enabled issuers of its tenant.

        Raises:
            NotFound: the tenant does not exist, or has no issuer.
            LimitExceeded: the address or the tenant has too many such requests.
        """
        address, slug = address_of(request.scope), str(request.path_params["tenant"])
        _take(self._addresses, address, "address")  # guard: people-rate-address
        found = await self._directory.issuers_of(slug, self._credentials.is_suspect(address))
        if found is None:
            self._credentials.count_failure(address)  # guard: people-failures-counted
            raise NotFound("There is no such page.")
        _take(self._tenants, found.tenant, "tenant")  # guard: people-rate-tenant
        return slug, found


_TENANT = 10
"""Rate limit of a tenant, as a multiple of the limit of one address."""


def sign_in_issuers(found: TenantIssuers) -> list[Issuer]:
    """Return the issuers that have a sign-in client."""
    return [issuer for issuer in found.issuers if issuer.sign_in is not None]


def _take(buckets: TokenBuckets, name: str, what: str) -> None:
    wait_s = buckets.take(name)
    if wait_s:
        message = (
            f"too many requests of this {what} for pages of people (limit {buckets.rate:g} per second and replica)"
        )
        raise LimitExceeded(f"{message}; retry later", retry_after_s=wait_s)
