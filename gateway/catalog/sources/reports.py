"""Stored form of import reports, and the notes that the gateway adds about the tenant's policy."""

from dataclasses import replace

import msgspec

from gateway.domain.sources import Compilation
from gateway.domain.tenancy.policy import Decision, Policy, Safety
from gateway.domain.updates.import_reports import ImportReport

_decode = msgspec.json.Decoder(ImportReport).decode


def encode_report(report: ImportReport) -> bytes:
    """The report in stored form."""
    return msgspec.json.encode(report)


def decode_report(stored: bytes) -> ImportReport:
    """The report from its stored form."""
    return _decode(stored)


def report_with_policy(compilation: Compilation, policy: Policy) -> ImportReport:
    """The report with a note for each level above `safe` that the tenant's policy allows unconfirmed."""
    notes = [
        f"policy: {count} {level} {'tool runs' if count == 1 else 'tools run'} without confirmation;"
        " the tenant's policy can deny them"
        for level in (Safety.MODERATE, Safety.DANGEROUS)
        if policy.decision_for(level) is Decision.ALLOW
        and (count := sum(operation.safety is level for operation in compilation.operations))
    ]
    return replace(compilation.report, notes=(*notes, *compilation.report.notes))
