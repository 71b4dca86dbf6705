"""Before and after of a changed object: what differs, bounded, and without secrets."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from gateway.definitions.changed_fields import describe_change
from gateway.definitions.limits import MAX_SIDE_BYTES
from gateway.domain.identifiers import LiveSourceId, PrimitiveId, ProfileId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Decision, Policy, PolicyRule
from gateway.domain.tenancy.profiles import Profile, Rule

KEY = b"key of the fingerprints"
NOW = datetime(2030, 1, 31, tzinfo=UTC)
TOOL = Primitive(id=PrimitiveId("too_1"), family=Family.TOOL, name="pays", definition=b'{"name":"pays"}', handler=b"{}")
TOKEN = "ghp_" + "a1B2" * 9
"""A text in the form of an access token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An object whose members are arbitrary."""

    members: dict[str, Any]
    raw: bytes = b""


async def _sides(before: object | None, after: object | None) -> dict[str, Any]:
    return dict(await describe_change(before, after, key=KEY))


async def test_both_sides_have_the_differences_only() -> None:
    """Ours: a profile that was opened to everything is seen in its entry (OPR-1)."""
    before = Profile(id=ProfileId("prf_1"), name="readonly", include=(Rule(methods=("GET",)),), version=3)
    after = replace(before, include=(), version=4)

    found = await _sides(before, after)

    assert set(found["before"]) == set(found["after"]) == {"include"}
    assert (found["before"]["include"][0]["methods"], found["after"]["include"]) == (["GET"], [])
    assert await _sides(before, replace(before, version=9)) == {}


async def test_a_new_object_has_no_before_and_a_removed_one_no_after() -> None:
    """Ours: creation and removal record the object (OPR-1)."""
    profile = Profile(id=ProfileId("prf_1"), name="small", summary_threshold=5000)

    assert (await _sides(None, profile))["after"] == (await _sides(profile, None))["before"]
    assert set(await _sides(None, profile)) == {"after"}
    assert (await _sides(None, profile))["after"]["summary_threshold"] == 5000


async def test_declared_fields_show_only_that_they_changed() -> None:
    """Ours: handlers and settings may hold secrets of the tenant, and are fingerprints (TEN-4)."""
    changed = replace(TOOL, handler=b'{"headers":{"X-Key":"sesame"}}', definition=b'{"name":"pays","title":"Pays"}')
    live = LiveSource(
        tenant=TenantId("ten_1"), id=LiveSourceId("liv_1"), name="a", kind=LiveKind.MCP, created_at=NOW, updated_at=NOW
    )
    other = replace(live, settings={"url": "https://x.example/sesame"})

    found = await _sides(TOOL, changed)
    moved = await _sides(live, other)

    assert found["after"]["definition"] == {"title": "Pays"}
    assert found["before"]["handler"] != found["after"]["handler"]
    assert found["after"]["handler"].startswith("mac:")
    assert list(moved["after"]) == ["settings"]
    assert "sesame" not in str((found, moved))


@pytest.mark.parametrize(
    ("members", "hidden"),
    [
        ({"api_key": "sesame"}, "sesame"),
        ({"deep": {"Password": "sesame"}}, "sesame"),
        ({"note": f"use {TOKEN}"}, TOKEN),
        ({TOKEN: 1}, TOKEN),
        ({"list": ["a", [TOKEN]]}, TOKEN),
        ({"url": "https://ada:sesame@host.example/x"}, "sesame"),
        ({"url": "see https://host.example/x?sig=sesame now"}, "sesame"),
        ({"raw": b"sesame"}, "sesame"),
    ],
)
async def test_no_known_form_of_a_secret_is_recorded(members: dict[str, Any], hidden: str) -> None:
    """Ours: neither under the name of a credential, nor in a text, a name, a URL or bytes (TEN-4)."""
    found = await _sides(Chosen(members={}), Chosen(members=members, raw=hidden.encode()))

    assert found["after"]
    assert hidden not in orjson.dumps(found).decode()


async def test_a_change_within_a_cut_text_is_seen() -> None:
    """Ours: a long text is cut, and its fingerprint shows that the rest differs (OPR-1)."""
    before, after = (Chosen(members={"text": "x" * 5000 + end}) for end in "ab")

    found = await _sides(before, after)

    assert found["before"]["members"]["text"] != found["after"]["members"]["text"]
    assert len(found["after"]["members"]["text"]) < 1100


async def test_a_side_is_bounded_and_shows_the_elements_that_differ() -> None:
    """Ours: one changed rule among thousands is seen, and an entry has at most two sides of 32 kB (OPR-1)."""
    rules = tuple(PolicyRule(decision=Decision.ALLOW, tool=f"tool_{number}", reason="y" * 200) for number in range(500))
    before = Policy(rules=rules)
    after = replace(before, rules=(*rules[:250], replace(rules[250], decision=Decision.DENY), *rules[251:]))

    found = await _sides(before, after)
    huge = await _sides(None, Chosen(members={str(number): "z" * 900 for number in range(500)}))

    assert [one["decision"] for one in found["after"]["rules"][:-1]] == ["deny"]
    assert found["after"]["rules"][-1] == "(499 equal elements)"
    assert huge["after"]["members"].startswith("(")
    for side in (*found.values(), *huge.values()):
        assert len(orjson.dumps(side)) <= MAX_SIDE_BYTES
