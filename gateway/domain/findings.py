"""Findings of the installation's health checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from gateway.domain.members.markers import About


class Verdict(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: Annotated[str, About("The stable name of the check.")]
    status: Annotated[Verdict, About("The severity of the finding.")]
    detail: Annotated[str, About("The details of the finding.")]
    mend: Annotated[str, About("The remedy; empty if no action is needed.")] = ""


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
