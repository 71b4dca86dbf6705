"""Applies a stored, named credential to a request."""

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import NamedCredential, UpstreamRequest
from gateway.errors import CredentialMissing
from gateway.upstream.auth.credentials import apply

_PLACES = {
    "header": SchemeKind.API_KEY_HEADER,
    "query": SchemeKind.API_KEY_QUERY,
    "bearer": SchemeKind.BEARER,
    "basic": SchemeKind.BASIC,
}


def with_credential(request: UpstreamRequest, named: NamedCredential) -> UpstreamRequest:
    """Return the request with the credential applied. The caller checks that its origin is allowed.

    Raises:
        CredentialMissing: this version does not know the position, or the value cannot be sent there.
    """
    kind = _PLACES.get(named.place)
    if kind is None:
        raise CredentialMissing("The credential goes to a place that this version does not know.")
    scheme = SchemePlan(name="credential", kind=kind, field=named.field)
    return apply(request, ((scheme,),), {"credential": named.credential})
