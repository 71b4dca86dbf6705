"""What an examination of the installation found."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at, how it is, and how to mend it; `mend` is empty when there is nothing to mend."""

    check: str
    status: Verdict
    detail: str
    mend: str = ""
