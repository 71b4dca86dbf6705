"""The table of limits of clients, from that of the gateway."""

from gateway.domain.listed.client_limits import LIMITS


def clients_part() -> str:
    """Every limit, with its clients, what they do beyond it, what keeps it, and its source."""
    rows = [(one.limit, ", ".join(one.clients), one.effect, one.met_by or "–", one.source) for one in LIMITS]
    head = "| limit | clients | beyond it | kept by | source |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)])
