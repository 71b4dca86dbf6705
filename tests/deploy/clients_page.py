"""The page of limits of clients, from the table of the gateway."""

from gateway.domain.listed.client_limits import LIMITS

CLIENTS = """\
MCP permits more than its clients, and the model APIs behind them, take. Tools of every origin are therefore listed in a
form that all of them take: imported, own, registered in Python, federated. The stored name and schema do not change,
and calls are validated against the stored schema ([decision 68](decisions/0068-listed-forms.md)).

- **Names.** Each foreign character is `_`, and a name that begins with a digit or `-` has `_` before it. If another
  tool has the result, a digest of eight hex digits follows. Calls take the stored name, the listed one, and the one
  with the digest.
- **Arguments.** Foreign characters of names are `_`; the description begins with the original name. Calls take both.
- **Schemas** are listed in 2020-12, with open objects, `items` for arrays, and the properties of all alternatives of
  the root.
- **Policy, access rules, profiles, approvals and audit** see the stored name only.

The report of an import, which `gateway try` and `gateway source add` print, names the clients that refuse or shorten
tools of the document. `gateway tool show NAME` prints the listed name and the limits that the tool exceeds.
`GET …/tools/{name}/listed` has the listed definition. `gateway doctor` examines the lists of all tenants, but omits the
limits of older clients.

A limit without an entry in the column *kept by* depends on what an author wrote, or on the number of tools."""


def clients_table() -> str:
    """Every limit, with its clients, what they do beyond it, what keeps it, and its source."""
    rows = [(one.limit, ", ".join(one.clients), one.effect, one.met_by or "–", one.source) for one in LIMITS]
    head = "| limit | clients | beyond it | kept by | source |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)])
