"""The endpoint that examines the installation; for the operator only."""

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminResponse, Plain
from gateway.admin.responses.models import Examined, FindingShown
from gateway.domain.findings import Verdict
from gateway.web.models import NoBody, NoQuery


async def examine_installation(admin: AdminDependencies, _: Plain) -> AdminResponse:
    """Examine the installation: database, Redis, keys, egress, clock, disk, versions."""
    findings = await admin.doctor.examine()
    verdicts = {finding.status for finding in findings}
    worst = next((verdict for verdict in (Verdict.FAILED, Verdict.WARNING) if verdict in verdicts), Verdict.OK)
    return AdminResponse(content=Examined(status=worst, findings=[FindingShown.of(finding) for finding in findings]))


ENDPOINTS = (
    endpoint(
        "GET",
        "/doctor",
        examine_installation,
        NoBody,
        query=NoQuery,
        responses={200: Examined},
        scopes=OPERATOR_ONLY,
        work=WorkKind.CHECK,
    ),
)
