"""Provisions a gateway through its admin API with a tenant, a source and a key. Safe to repeat."""

from pathlib import Path

from gateway.app.local.key_file import read_key, write_key
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.locations import mcp_url
from gateway.cli.client.mcp_endpoint import McpClient
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import DocumentArgument
from gateway.cli.input.import_request import Upload, upload
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.output.decisions import describe_decisions
from gateway.cli.output.progress import Progress
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Safety


def ensure_tenant(admin: AdminApi, tenant: str) -> None:
    """Create the tenant unless it exists.

    Raises:
        Failure: the gateway refused.
    """
    try:
        admin.get(path_of("tenants", tenant))
    except Failure as failure:
        if failure.exit_code != ExitCode.NOT_FOUND:
            raise
        admin.send("POST", "/tenants", {"slug": tenant})


def policy_line(admin: AdminApi, tenant: str, *, change: str) -> str:
    """Return one line with the tenant's decisions and the way to change them.

    Raises:
        Failure: the gateway refused.
    """
    found = admin.get(path_of("tenants", tenant, "policy"))
    return f"Policy: {describe_decisions(*(text_at(found, level) for level in Safety))}; change it with {change}."


def ensure_source(
    admin: AdminApi, progress: Progress, *, path: str, fields: JsonObject, document: DocumentArgument
) -> JsonObject:
    """Import the document as the source `fields["name"]` below `path`, or replace it even if this removes tools.

    Returns the source with its report.

    Raises:
        Failure: the gateway refused.
    """
    name = text_at(fields, "name")
    if find_source(admin, path=path, name=name) is None:
        return upload(admin, progress, Upload(method="POST", path=path, body=fields, document=document))
    options = {field: value for field, value in fields.items() if field != "name"} | {"allow_removals": True}
    replace = Upload(method="PUT", path=path + path_of(name), body=options, document=document)
    return upload(admin, progress, replace)


def find_source(admin: AdminApi, *, path: str, name: str) -> JsonObject | None:
    """Return the source of this name; None if there is none.

    Raises:
        Failure: the gateway refused.
    """
    try:
        return admin.get(path + path_of(name))
    except Failure as failure:
        if failure.exit_code == ExitCode.NOT_FOUND:
            return None
        raise


def ensure_key(admin: AdminApi, tenant: str, *, kept_in: Path) -> str:
    """Return a valid key for MCP clients: the key in the file `kept_in`, or a new key that is stored there.

    Raises:
        Failure: the gateway refused.
    """
    stored = read_key(kept_in)
    if stored is not None and _is_valid_key(admin.url, tenant, stored):
        return stored
    wanted: JsonObject = {"name": tenant, "scopes": [Scope.MCP.value]}
    key = text_at(admin.send("POST", path_of("tenants", tenant, "keys"), wanted), "key")
    write_key(kept_in, key)
    return key


def _is_valid_key(url: str, tenant: str, key: str) -> bool:
    try:
        with McpClient(mcp_url(url, tenant), key) as endpoint:
            next(endpoint.tools(), None)
    except Failure as failure:
        if failure.exit_code in {ExitCode.DENIED, ExitCode.NOT_FOUND}:
            return False
        raise
    return True
