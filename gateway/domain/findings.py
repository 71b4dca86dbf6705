"""Findings of the installation's health checks."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check; `mend` is the remedy, empty if there is nothing to do."""

    check: str
    status: Verdict
    detail: str
    mend: str = ""
