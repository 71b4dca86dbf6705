"""The test of a credential; the other endpoints follow from the declaration."""

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminResponse, Plain
from gateway.admin.responses.credentials import CredentialTested
from gateway.catalog import credentials
from gateway.web.models import NoBody, NoQuery


async def test_credential(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Read the secret of a credential in the same way as a call; the response does not contain it."""
    reference = await credentials.test_credential(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=CredentialTested(reference=None if reference is None else str(reference)))


ENDPOINTS = (
    endpoint(
        "POST",
        "/tenants/{t}/credentials/{name}/test",
        test_credential,
        NoBody,
        query=NoQuery,
        responses={200: CredentialTested},
        problems=frozenset({502}),
        work=WorkKind.OUTBOUND,
    ),
)
