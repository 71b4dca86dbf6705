"""The audit chain: links between rows, and ids that sort."""

from typing import Any

import pytest

from gateway.domain.audit import ChainFaultKind
from gateway.store.audit.hash_chain import CATALOG, START, AuditRow, Link, audit_id, link, storable
from gateway.store.audit.verification import TrailCheck, TrailKeys

_ROW = AuditRow("ten", "aud", "writer", 1, 5, "call", "p", "s", "call", "tool", "ok", "cor", b"d", 200, 1, 2, "{}")


def test_every_field_and_the_row_before_are_bound() -> None:
    """Ours: no field of a row can change without its MAC."""
    key = b"k" * 32
    macs = {link(key, START, _ROW), link(key, b"before", _ROW), link(b"other", START, _ROW)}
    changes: list[dict[str, Any]] = [{name: "changed"} for name in _ROW._fields]
    macs |= {link(key, START, _ROW._replace(**change)) for change in changes}

    assert len(macs) == 3 + len(_ROW._fields)


@pytest.mark.parametrize(("action", "fault"), [("tenant.create", None), ("source.import", ChainFaultKind.MISSING)])
def test_changes_begin_with_the_creation_of_the_tenant(action: str, fault: ChainFaultKind | None) -> None:
    """Ours: an entry that follows nothing is one of a tenant's creation, or the trail was begun again (SAF-4)."""
    row = _ROW._replace(writer=CATALOG, kind="change", action=action)
    check = TrailCheck(TrailKeys(chain=[b"k" * 32]))
    check.follow([Link(row, link(b"k" * 32, START, row))])

    [chain] = check.chains(1)

    assert (None if chain.fault is None else chain.fault.kind) is fault


def test_ids_sort_by_time() -> None:
    """Ours: the trail is read newest first by its primary key."""
    times = [0, 1_000, 999_999_000, 1_785_000_000_000_000, 1_785_000_000_001_000]

    assert sorted(ids := [audit_id(at, "zzzzzzzzz") for at in times]) == ids
    assert {len(each) for each in ids} == {len("aud_") + 20}


def test_text_that_cannot_be_stored_becomes_text_that_can() -> None:
    """Ours: a NUL or half a character in one call's tool name costs no call an audit entry."""
    assert storable("plain") == "plain"
    assert storable("Grüße 🎉") == "Grüße 🎉"
    assert storable("a\x00b") == "a\ufffdb"
    assert storable("a\ud800b") == "a?b"
