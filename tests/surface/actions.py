"""The names that clients of the trail and of events know: audit actions by operation, webhook kinds, bus events.

Operations write their actions when they run, so `tests/behaviour/admin/test_admin_contract.py` walks through all of
them and compares. The file has the names of commit 79130e09 under `former`, which stay, and the later ones under `new`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast, get_args

from gateway.domain.events import Event
from gateway.domain.updates.webhook_endpoints import TEST_KIND, WebhookEventKind
from gateway.redis.envelopes import Envelope
from tests.surface.canonical import Json
from tests.surface.differences import ADDED, REMOVED, Difference, compare_names

FILE = Path(__file__).parent / "golden" / "actions.json"
ACTIONS, EVENTS = "actions", "events"
Names = Mapping[str, Sequence[str]]
"""Names by their place: actions by operation, or members by event."""
_MAC_BYTES = 16
_SAMPLES: Mapping[str, object] = {"int": 1, "bool": False, "tuple[int, ...]": ()}


def load() -> Json:
    """Return the content of the file."""
    return cast("Json", json.loads(FILE.read_text()))


def events() -> dict[str, list[str]]:
    """Return the members of each event on the bus, and the kinds of events that webhook endpoints receive."""
    envelope = Envelope(namespace="gw", secret=b"0" * 32)
    found: dict[str, list[str]] = {}
    for event in get_args(Event):
        members: dict[str, Any] = {one.name: _SAMPLES.get(str(one.type), "x") for one in fields(event)}
        _, sealed = envelope.seal(event(**members))
        sent = json.loads(sealed[_MAC_BYTES:])
        kind = sent.pop("kind")
        found[kind] = sorted(sent)
    return {**found, "webhook endpoints": sorted([*WebhookEventKind, TEST_KIND])}


def compare(golden: Json, today: Names) -> Iterator[Difference]:
    """Yield the actions that an operation no longer writes, and names that neither the file nor a later list has.

    Another operation may write a known action: a new PUT creates as the POST beside it does.
    """
    former: Names = golden["former"]["operations"]
    known = {name for names in former.values() for name in names} | {*golden["new"]["actions"]}
    for place in sorted({*former, *today}):
        old, new = set(former.get(place, ())), set(today.get(place, ()))
        for name in sorted(old - new):
            yield Difference(group=ACTIONS, name=f"{place} {name}", change=REMOVED, is_breaking=True)
        for name in sorted(new - old - known):
            yield Difference(group=ACTIONS, name=f"{place} {name}", change=ADDED)


def compare_events(golden: Json, today: Names) -> Iterator[Difference]:
    """Yield the events, their members and the kinds for webhook endpoints that are gone or not listed as new."""
    former, later = golden["former"]["events"], golden["new"]["events"]
    for place in sorted({*former, *later, *today}):
        listed = {*former.get(place, ()), *later.get(place, ())}
        yield from compare_names(f"{EVENTS} {place}", listed, today.get(place, ()))
