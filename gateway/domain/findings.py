"""Findings of the installation's health checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check. `mend` (its name in the admin API) is the remedy; empty if no action is needed."""

    check: str
    status: Verdict
    detail: str
    mend: str = ""


def fine(check: str, detail: str) -> Finding:
    """A finding that needs no remedy."""
    return Finding(check=check, status=Verdict.OK, detail=detail)


def warning(check: str, detail: str, remedy: str) -> Finding:
    """A finding that needs the operator's attention."""
    return Finding(check=check, status=Verdict.WARNING, detail=detail, mend=remedy)


def failure(check: str, detail: str, remedy: str) -> Finding:
    """A finding about a fault or an unsafe configuration."""
    return Finding(check=check, status=Verdict.FAILED, detail=detail, mend=remedy)


def list_names(names: Sequence[str], *, limit: int) -> str:
    """Return the first names, and the number of the others."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")
