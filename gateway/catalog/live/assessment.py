"""The safety level of a live source's tool, and the annotations that clients see.

The effect of a tool at its source is unknown, so the level is at least moderate. The source's own hints can raise the
level, but not lower it.
"""

import re
from collections.abc import Mapping

from gateway.domain.tenancy.policy import Safety

_HARMFUL = frozenset(
    (
        "delete",
        "destroy",
        "drop",
        "erase",
        "kill",
        "purge",
        "remove",
        "revoke",
        "terminate",
        "truncate",
        "uninstall",
        "wipe",
    )
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def assess_tool(remote: str, hints: Mapping[str, object]) -> tuple[Safety, str]:
    """The level of the tool with this remote name, and the reason for it."""
    if hints.get("destructiveHint") is True:
        return Safety.DANGEROUS, "its source marks it as destructive (destructiveHint)"
    harmful = next((word for word in _WORD.findall(remote) if word.lower() in _HARMFUL), None)
    if harmful is not None:
        return Safety.DANGEROUS, f"its name contains {harmful}"
    return Safety.MODERATE, "the effect of a tool at its live source is unknown"


def explicit_annotations(hints: Mapping[str, object], level: Safety) -> dict[str, object]:
    """All annotations of a tool. A dangerous tool is marked as destructive, regardless of its source's hints."""
    is_dangerous = level is Safety.DANGEROUS
    reads = hints.get("readOnlyHint") is True and not is_dangerous  # guard: live-hint-of-dangerous
    destroys = hints.get("destructiveHint") is not False and not reads
    return {
        "readOnlyHint": reads,
        "destructiveHint": is_dangerous or destroys,
        "idempotentHint": hints.get("idempotentHint") is True,
        "openWorldHint": hints.get("openWorldHint") is not False,
    }
