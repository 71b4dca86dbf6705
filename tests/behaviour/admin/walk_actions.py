"""The part of the walk about the trail: each operation writes the actions that it wrote at commit 79130e09."""

from typing import Any
from urllib.parse import quote

from tests.behaviour.admin.walk import Walk
from tests.support.documents import pets
from tests.support.primitives import static_tool, template, text_prompt, text_resource
from tests.surface.actions import compare, compare_events, events, load
from tests.surface.differences import report

ACME = "/tenants/acme"
_KINDS = ("change", "call")


async def walk_upserts(walk: Walk) -> None:
    """Create an object of each kind by PUT that the rest of the walk creates by POST."""
    text = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    secret = {"place": "bearer", "value": "s3cr3t", "origins": ["https://api.example"]}
    bodies: dict[str, dict[str, Any]] = {
        "profiles/fresh": {},
        "credentials/fresh": secret,
        "tools/fresh": static_tool("fresh"),
        "prompts/fresh": text_prompt("fresh"),
        "sources/fresh": {"document": pets("https://pets.example"), "prefix": "fresh"},
        f"resources?uri={quote('docs://fresh', safe='')}": text_resource("docs://fresh"),
        f"resource-templates?uri={quote('docs://fresh/{id}', safe='')}": template("docs://fresh/{id}", text),
    }
    for path, body in bodies.items():
        await walk.ask("PUT", f"{ACME}/{path}", 201, json=body)
    rule = {"check": "secrets", "phases": ["call"]}
    await walk.ask("PUT", f"{ACME}/guardrails/fresh", 201, json={**rule, "action": "log"})
    await walk.ask("PUT", f"{ACME}/guardrails/fresh", 200, json={**rule, "action": "block"})


async def entries_of(walk: Walk, kind: str) -> list[dict[str, Any]]:
    """All entries of one kind in the trail of the walk."""
    entries: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        query = f"&cursor={cursor}" if cursor else ""
        page = (await walk.ask("GET", f"{ACME}/audit?kind={kind}&limit=200{query}", 200)).json()
        entries, cursor = entries + page["items"], page["next_cursor"]
    return entries


async def differences(walk: Walk) -> str:
    """The report on actions of operations, and names of events, that the golden file does not have, or only it has."""
    found: dict[str, set[str]] = {}
    for entry in [entry for kind in _KINDS for entry in await entries_of(walk, kind)]:
        operation = walk.operations.get(entry["correlation_id"])
        if operation is not None and (entry["kind"] == "change" or entry["action"].startswith("approval.")):
            found.setdefault(operation, set()).add(entry["action"])
    golden = load()
    today = {operation: sorted(actions) for operation, actions in found.items()}
    return report([*compare(golden, today), *compare_events(golden, events())])
