"""Endpoints of the secret keys of the installation; for the operator only."""

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.requests.models import SecretRotate
from gateway.domain.tenancy.secret_keys import SecretKeysState
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import NoBody, NoQuery

SecretKeysShown = shown_model(SecretKeysState)


async def show_secret_keys(admin: AdminDependencies, _: Plain) -> AdminResponse:
    """Show the secret keys by name, the values that need each of them, and the progress of the re-encryption."""
    return AdminResponse(content=SecretKeysShown.of(await admin.secret_keys.read()))


async def rotate_secrets(admin: AdminDependencies, call: AdminRequest[SecretRotate, NoQuery]) -> AdminResponse:
    """Re-encrypt, in the background, all values that an older secret key encrypted; with `dry_run`, only report them.

    The request is refused while a running replica lacks the current secret key. The response shows the progress.
    """
    if not call.body.dry_run:
        await admin.secret_keys.start()
    content = SecretKeysShown.of(await admin.secret_keys.read())
    return AdminResponse(status=200 if call.body.dry_run else 202, content=content)


ENDPOINTS = (
    endpoint(
        "GET",
        "/secrets",
        show_secret_keys,
        NoBody,
        query=NoQuery,
        responses={200: SecretKeysShown},
        scopes=OPERATOR_ONLY,
        work=WorkKind.CHECK,
    ),
    endpoint(
        "POST",
        "/secrets/rotate",
        rotate_secrets,
        SecretRotate,
        query=NoQuery,
        responses={200: SecretKeysShown, 202: SecretKeysShown},
        scopes=OPERATOR_ONLY,
        work=WorkKind.CHECK,
        problems=frozenset({409}),
    ),
)
