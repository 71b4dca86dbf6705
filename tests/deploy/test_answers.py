"""Questions of readers: the page that answers each is one link away from the index, two from the README."""

import pytest

from tests.deploy.compose import ROOT
from tests.site.pages import navigation

_ANSWERS = {
    "Rotate a key without a gap": ("docs/keys.md", "key rotate"),
    "Limit a tenant to 10 calls per second": ("docs/how-to/limits.md", "--limit calls_per_second=10"),
    "A private upstream is refused": ("docs/how-to/private-upstream.md", "upstream.egress_denied"),
    "Behind nginx": ("docs/how-to/nginx.md", "deploy/nginx/gateway.conf"),
    "Calls, time and bytes of a tool in a day": ("docs/how-to/siem.md", "## Calls of a tool in a day"),
    "Backup and restore": ("docs/how-to/disaster-drill.md", "pg_restore"),
    "Claude Desktop": ("docs/how-to/claude-and-chatgpt.md", "connect claude-desktop"),
    "Entra, Okta or Google": ("docs/how-to/identity-providers.md", "Entra ID"),
    "OAuth client credentials of an API": ("docs/how-to/api-credentials.md", "--login oauth=CLIENT-ID:CLIENT-SECRET"),
    "Upgrade without a gap": ("docs/how-to/upgrade.md", "gateway migrate"),
    "All cores of one machine": ("docs/how-to/all-cores.md", "--workers auto"),
    "Audit to a SIEM": ("docs/how-to/siem.md", "audit sink create"),
    "A key has leaked": ("docs/how-to/leaked-secret.md", "key check leaked.log --revoke"),
    "Managed PostgreSQL without a superuser": ("docs/how-to/managed-databases.md", "roles.sql"),
    "The rule that refused a call": ("docs/how-to/refused-call.md", "audit explain"),
    "Tenants in a repository": ("docs/how-to/gitops.md", "gateway apply -f platform"),
    "Everything from installation to backup": ("docs/tutorial.md", "gateway audit verify"),
    "The alert GatewaySlow": ("docs/operations.md", "### GatewaySlow"),
    "A second person approves a call": ("docs/approvals.md", "waits for another person"),
    "Undo a change of a document": ("docs/source-refresh.md", "rollback"),
    "Verify an export without the gateway": ("docs/audit.md", "audit_verifier.py"),
    "Reference of the admin API without a network": ("docs/admin-api.md", "/admin/docs"),
    "Install with Helm": ("deploy/helm/mcp-gateway/README.md", "helm install"),
    "Supported versions": ("RELEASE.md", "## Support"),
}


@pytest.mark.parametrize("question", _ANSWERS)
def test_a_question_is_answered_within_two_links(question: str) -> None:
    """Ours: the navigation has the page, and the page has the answer's command or term."""
    page, answer = _ANSWERS[question]

    assert page in {one for section in navigation().values() for one in section}
    assert answer in (ROOT / page).read_text()
