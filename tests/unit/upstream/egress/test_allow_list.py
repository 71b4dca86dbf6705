"""Allow-lists: reading and writing of entries, and that every outbound request names its tenant."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway
from gateway.upstream.client import UpstreamClient
from gateway.upstream.egress.allow_list import read_entry, read_stored, write_entry
from gateway.upstream.egress.guard import Guard

_GATEWAY = Path(gateway.__file__).parent
_SENDING = {one.__name__ for one in (UpstreamClient.send, UpstreamClient.send_streaming, UpstreamClient.send_full)}
_MAKING = {"fetch_document", "guarded_client", "GuardedTransport"}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("Billing.INTERNAL:8443", "billing.internal:8443"),
        ("billing.internal.:8443", "billing.internal.:8443"),
        (" 10.0.0.5:08080 ", "10.0.0.5:8080"),
        ("[FD00:0:0::5]:80", "[fd00::5]:80"),
        ("[::ffff:10.0.0.5]:80", "10.0.0.5:80"),
        ("[0:0:0:0:0:0:0:1]:443", "[::1]:443"),
    ],
)
def test_an_entry_has_one_spelling(written: str, stored: str) -> None:
    """Ours: the stored form is the compared one, and reads back as itself (ISO-5)."""
    entry = read_entry(written)

    assert entry is not None
    assert write_entry(entry) == stored
    assert read_entry(stored) == entry


@given(st.ip_addresses(), st.integers(min_value=1, max_value=65535))
def test_every_address_reads_back(address: object, port: int) -> None:
    """Ours: writing and reading an entry are inverse (ISO-5)."""
    entry = read_entry(f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}")

    assert entry is not None
    assert read_entry(write_entry(entry)) == entry


@given(st.text(max_size=40))
def test_every_written_entry_permits_its_own_host_only(text: str) -> None:
    """Ours: no text is a wider permission than one host and one port (ISO-5)."""
    entry = read_entry(text)
    permitted = read_stored([text])

    assert permitted == (frozenset() if entry is None else {entry})
    if entry is None or str(entry[0]) != "10.0.0.5":
        assert not Guard().may_dial("10.0.0.5", 8443, permitted)


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """Every place that sends something through the pool."""
    sending = re.compile(rf"upstream\s*\.\s*(?:{'|'.join(_SENDING)})\s*\(|{'|'.join(_MAKING)}")
    for path in sorted(_GATEWAY.rglob("*.py")):
        text = path.read_text()
        if sending.search(text) is None:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            owner, _, name = called.rpartition(".")
            if (name in _SENDING and owner.endswith("upstream")) or name in _MAKING:
                yield f"{path.relative_to(_GATEWAY)}:{node.lineno} {called}", node


def test_every_request_names_its_tenant() -> None:
    """Ours: the tenant decides on permissions, connections and lane; no request goes without one (ISO-5)."""
    calls = dict(_calls())

    assert len(calls) >= 14
    named = {place: {word.arg: word.value for word in call.keywords} for place, call in calls.items()}
    assert [place for place, words in named.items() if "tenant" not in words] == []
    # The endpoint for audit heads and the secret store are the operator's: they have no tenant's list.
    nobodys = {place.partition(":")[0] for place, words in named.items() if ast.unparse(words["tenant"]) == "None"}
    assert nobodys == {"upstream/audit_heads_endpoint.py", "upstream/secret_stores/vault.py"}
