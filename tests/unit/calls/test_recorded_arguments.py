"""Arguments in the audit trail: by rule, bounded, without secrets."""

import hmac
import json
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from gateway.calls.arguments.limits import MAX_RECORD_BYTES, MAX_TEXT_LENGTH
from gateway.calls.arguments.recorded_arguments import ArgumentRecorder
from gateway.definitions.policy.argument_selection import ArgumentSelection
from gateway.definitions.policy.limits import MAX_NAME_LENGTH, MAX_READ
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Decision, Policy, RecordingRule, Safety
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
ALL = RecordingRule(keep=("",))
AWS_KEY = "AKIA" + "Q" * 16


def _derive(purpose: str) -> bytes:
    return hmac.digest(b"secret key", purpose.encode(), "sha256")


def _record(rule: RecordingRule, arguments: Mapping[str, object], tenant: TenantId = ACME) -> dict[str, Any]:
    found: Any = ArgumentRecorder(_derive).record(tenant, ArgumentSelection(rule), arguments)["arguments"]
    assert orjson.loads(orjson.dumps(found)) == found
    recorded: dict[str, Any] = found
    return recorded


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (RecordingRule(keep=("/id",)), {"/id": 7}),
        (RecordingRule(keep=("/owner",)), {"/owner/name": "Ada", "/owner/tags": []}),
        (RecordingRule(keep=("/items/*/sku",)), {"/items/0/sku": "a", "/items/1/sku": "b"}),
        (RecordingRule(keep=("/items/1",)), {"/items/1/sku": "b", "/items/1/n": 2}),
        (RecordingRule(keep=("/items/01", "/items/x", "/items/9", "/id/x", "/none", "/ID")), {}),
        (RecordingRule(keep=("/a~1b/c~0d",)), {"/a~1b/c~0d": None}),
        (RecordingRule(keep=("",), drop=("/owner", "/items", "/a~1b")), {"/id": 7}),
    ],
)
def test_pointers_select_arguments(rule: RecordingRule, kept: dict[str, object]) -> None:
    """Ours: a pointer selects a value and all below it; `*` is any member or element (SAF-4)."""
    items = [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]
    tags: list[str] = []
    arguments = {"id": 7, "owner": {"name": "Ada", "tags": tags}, "items": items, "a/b": {"c~d": None}}

    assert _record(rule, arguments).get("kept", {}) == kept


def test_drop_counts_before_hash_and_hash_before_keep() -> None:
    """Ours: whatever a rule keeps, what it drops or hashes is not in the trail (SAF-4)."""
    rule = RecordingRule(
        keep=("", "/pin", "/customer/name"), hash=("/customer", "/pin"), drop=("/pin", "/customer/notes")
    )

    found = _record(rule, {"id": 1, "pin": 4711, "customer": {"name": "Ada", "notes": "x"}})

    assert found.keys() == {"kept", "hashed", "dropped"}
    assert (found["kept"], found["dropped"]) == ({"/id": 1}, ["/pin", "/customer/notes"])
    assert list(found["hashed"]) == ["/customer/name"]


@pytest.mark.parametrize("name", ["PIN", "p\u200bin", "ｐｉｎ", " pin", "pín"])
def test_resembling_names_are_dropped_too(name: str) -> None:
    """Ours: a caller does not evade a rule with a name that the upstream reads as the dropped one (SAF-4)."""
    rule = RecordingRule(keep=("",), hash=("/customer",), drop=("/pin",))

    found = _record(rule, {name: 4711, "Customer": "Ada"})

    assert "kept" not in found
    assert found["dropped"] == [f"/{name}"]
    assert list(found["hashed"]) == ["/Customer"]


def test_hashes_compare_values_of_one_tenant() -> None:
    """Ours: a hash is equal for equal values wherever they are, and another tenant has another one (SAF-4)."""
    rule = RecordingRule(hash=("/*",))
    one = _record(rule, {"a": "Ada", "b": ["Ada"], "c": 1, "d": "1", "e": True})["hashed"]
    other = _record(rule, {"a": "Ada"}, OTHER)["hashed"]

    assert one["/a"] == one["/b/0"]
    assert len({one["/a"], one["/c"], one["/d"], one["/e"], other["/a"]}) == 5


@pytest.mark.parametrize(
    "arguments",
    [
        {"note": f"my key: {AWS_KEY}"},
        {"note": "x" * (MAX_TEXT_LENGTH - 10) + " " + AWS_KEY},
        {"note": {"a": [f"https://ada:{'s3cret'}@db.example/x"]}},
        {AWS_KEY: 1},
        {"https://ada:s3cret@db.example": {"x": 1}},
        {"note": "%41KIA" + "Q" * 16},
        {"password": 12345678},
        {"Pass Word": "hunter2"},
        {"api-key": ["hunter2"]},
        {"login": {"client_secret": {"a": "hunter2"}}},
        {"max_tokens": "hunter2"},
        {"pwd": "hunter2"},
        {"userPin": 12345678},
        {"otp": "hunter2", "mfa_code": "hunter2", "cvv": 12345678, "CVC2": "hunter2"},
        {"session_id": "hunter2", "signature": "hunter2", "sessionId": "hunter2"},
        {"p\u0430ssword": "hunter2", "\u0440wd": "hunter2"},
        {"connection_string": "Server=db;Password=hunter2;"},
        {"note": "Server=db;User=ada;Password=hunter2;"},
        {"note": "see https://api.example/x?page=1&access_token=hunter2"},
        {"note": 'curl -H "X-Api-Key: hunter2"'},
        {"note": "Authorization: hunter2"},
        {"note": "use Bearer hunter2hunter2 here"},
        {"note": "Basic aHVudGVyMmh1bnRlcjI= hunter2"},
        {"note": "eyJhbGciOiJub25lIn0.e30. hunter2"},
        {"note": "the card is 4111 1111 1111 1111, hunter2"},
    ],
)
def test_known_forms_of_secrets_are_always_dropped(arguments: dict[str, object]) -> None:
    """Ours: a secret is in no entry, neither as a value nor as a name, neither kept nor hashed (SAF-4)."""
    for rule in (ALL, RecordingRule(hash=("",))):
        found = _record(rule, arguments)

        assert found.keys() == {"dropped"}, found
        assert not any(part in json.dumps(found) for part in (AWS_KEY, "s3cret", "hunter2", "12345678", "QQQQ"))


def test_pairs_of_a_name_and_a_value_are_read_as_members() -> None:
    """Ours: a header or a field of a form is dropped by its name, however it is written (SAF-4)."""
    headers = [{"name": "Authorization", "value": "hunter2"}, {"key": "X-Page", "value": "2"}, ["pwd", "hunter2"]]

    found = _record(ALL, {"headers": headers})

    assert "hunter2" not in json.dumps(found)
    assert found["dropped"] == ["/headers/0/value", "/headers/2/1"]
    assert found["kept"]["/headers/1/value"] == "2"


def test_words_that_contain_such_names_are_kept() -> None:
    """Ours: the search is for names, not for letters in them (SAF-4)."""
    arguments = {
        "footprint": "a",
        "pinned": "b",
        "compass": "c",
        "panel": "d",
        "design": "e",
        "note": "Ratio 3:4; basic information: the bearer bonds, status=open, at 12:30",
        "order": "1234567890123456",
    }

    assert _record(ALL, arguments)["kept"] == {f"/{name}": value for name, value in arguments.items()}


def test_counts_under_such_names_are_kept() -> None:
    """Ours: `max_tokens` with a number is no credential (SAF-4)."""
    assert _record(ALL, {"max_tokens": 5, "has_password": True, "token": None})["kept"] == {
        "/max_tokens": 5,
        "/has_password": True,
        "/token": None,
    }


def test_records_are_bounded() -> None:
    """Ours: no arguments make a large entry, and an entry shows what it lacks (SAF-4)."""
    long = _record(ALL, {"note": "ü" * 5000, "id": 1})
    assert (len(long["kept"]["/note"]), long["kept"]["/id"], long["cut"]) == (MAX_TEXT_LENGTH, 1, ["/note"])

    many = _record(ALL, {f"{number}": "" for number in range(100_000)})
    assert (len(many["kept"]) < MAX_READ, many["cut"]) == (True, [""])
    assert _record(RecordingRule(keep=("/*/id",)), {f"{number}": "" for number in range(1000)}) == {"cut": [""]}
    large = _record(ALL, {f"{number}": "\x00" * 500 for number in range(100)})
    assert (len(orjson.dumps(large)) < MAX_RECORD_BYTES + 100, large["cut"]) == (True, [""])

    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"a": deep}
    assert _record(ALL, deep) == {"cut": ["/a" * 32]}
    assert _record(ALL, {"a": {"n" * (MAX_NAME_LENGTH + 1): 1}}) == {"cut": ["/a"]}
    assert _record(ALL, {"n": 2**70, "m": -(2**63), "f": 1e300})["kept"]["/n"] == str(2**70)


def test_others_cannot_push_named_arguments_out() -> None:
    """Ours: a caller cannot hide a named argument behind thousands of others (SAF-4)."""
    others = {f"{number}": "x" * 900 for number in range(2000)}

    found = _record(RecordingRule(keep=("", "/amount"), drop=("/pin",)), {**others, "amount": 5, "pin": 1})

    assert (found["kept"]["/amount"], found["dropped"], found["cut"]) == (5, ["/pin"], [""])
    assert _record(RecordingRule(keep=("/amount",)), {**others, "amount": 5}) == {"kept": {"/amount": 5}}


def _details(house: HandlerBench) -> list[tuple[str, object]]:
    """The kind and tool of each record, and its recorded arguments; other members of the detail are of other tests."""
    found: list[tuple[str, object]] = []
    for record in house.journal.records:
        kept = {name: value for name, value in (record.detail or {}).items() if name == "arguments"}
        found.append((f"{record.kind.value} {record.tool}", kept or None))
    return found


async def test_the_first_entry_of_a_call_has_its_arguments() -> None:
    """Ours: once per call, before it runs, and also for a call that is refused (SAF-4)."""
    house = HandlerBench(UpstreamClient())
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    house.has_code(Family.TOOL, "pays", lambda _: "paid", safety=Safety.MODERATE, schema=schema)
    house.has_code(Family.TOOL, "reads", lambda _: "read")
    house.has_prompt("greets", {"kind": "template", "text": "{{ name }}"}, "name")
    rules = (RecordingRule(tool="reads"), RecordingRule(tool="gree*", keep=("/name",)), RecordingRule(keep=("/id",)))
    house.set_policy(Policy(recorded_arguments=rules))
    kept = {"arguments": {"kept": {"/id": 1}}}

    await house.call("pays", {"id": 1})
    assert _details(house) == [("call.intent pays", kept), ("call pays", None)]

    house.journal.records.clear()
    await house.call("pays", {"id": "x"})
    await house.call("reads", {"id": 1})
    assert _details(house) == [("call pays", {"arguments": {"kept": {"/id": "x"}}}), ("call reads", None)]

    house.journal.records.clear()
    await house.get("greets", {"name": "Ada"})
    assert _details(house) == [("call greets", {"arguments": {"kept": {"/name": "Ada"}}})]

    house.journal.records.clear()
    house.set_policy(Policy(moderate=Decision.DENY, recorded_arguments=rules))
    await house.call("pays", {"id": 1})
    assert _details(house) == [("call pays", kept)]
