"""How a credential that is stored under a name gets onto a request."""

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
    """The request with the credential in its place; that it may go there is for the caller to know.

    Raises:
        CredentialMissing: the place is of a newer version than this.
    """
    kind = _PLACES.get(named.place)
    if kind is None:
        raise CredentialMissing("The credential goes to a place that this version does not know.")
    scheme = SchemePlan(name="credential", kind=kind, field=named.field)
    return apply(request, ((scheme,),), {"credential": named.credential})
