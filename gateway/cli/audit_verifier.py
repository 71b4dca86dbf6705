"""Verifies an exported audit trail: one file that needs only Python 3.11 and `cryptography`.

    python audit_verifier.py EXPORT --key PUBLIC_KEY [--tenant ID] [--heads FILE] [--earlier EXPORT]

Copy this file to a machine that the gateway's operator does not control. EXPORT is what `gateway audit export` wrote,
PUBLIC_KEY the key that `gateway audit keys` named, noted when the trail was trusted. The exit code is 0 if nothing was
changed, removed, inserted or reordered since the export, 1 if something was, 2 for wrong arguments.

Retention removes beginnings of chains; a signed cut line names them, and is compared with the entries of `--earlier`.
The export is read line by line, so the memory use depends on the number of chains only. `docs/audit.md` describes the
format.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT: Final = 1
_MAX_LINE_LENGTH, _MAX_FAULTS, _SHOWN_CHARACTERS = 64 * 1024 * 1024, 100, 200
_HIDING: Final = (*range(0x2070), 0xFEFF, *range(0xE0000, 0xE1000))
_ESCAPES: Final = {code: ascii(chr(code))[1:-1] for code in _HIDING if code != 10 and not chr(code).isprintable()}
_TRAIL: Final = "trail"
_CUT: Final = "tenant writer first last revision oldest_us newest_us head content anchor at_us"

Line = dict[str, Any]
Head = tuple[int, str, str]
"""The end of a chain: number and MAC of its last line, and a hash over the contents of all its lines."""
_START: Final = (0, "", "")


class Broken(Exception):
    """A line that makes the rest of the export unverifiable."""


@dataclass(slots=True)
class Verified:
    """The result of verifying one export."""

    tenant: str = ""
    made_at: str = ""
    wanted: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: int = 0
    heads: int = 0
    seals: int = 0
    faults: list[str] = field(default_factory=list[str])
    ends: dict[str, Head] = field(default_factory=dict[str, Head])
    """The last entry of each chain."""
    cuts: dict[str, list[Head]] = field(default_factory=dict[str, list[Head]])
    """The last removed entry of each cut of each chain."""

    @property
    def is_whole(self) -> bool:
        """True if there is no fault."""
        return not self.faults

    def report(self, line: int, fault: str) -> None:
        """Record a fault; only the first hundred are kept."""
        if len(self.faults) < _MAX_FAULTS:
            self.faults.append(f"line {line}: {fault[:_SHOWN_CHARACTERS]}")


class ExportVerifier:
    """Verifies the lines of one export in order.

    A seal must be valid for one of the given public keys. The numbers of a chain must have no gaps. The MAC of an entry
    must equal the MAC in the signatures of the gateway, in the heads file, and in the earlier export.
    """

    def __init__(
        self,
        keys: Iterable[bytes],
        *,
        tenant: str | None = None,
        heads: Mapping[int, str] | None = None,
        earlier: Mapping[str, Head] | None = None,
    ) -> None:
        self._keys = {hashlib.sha256(key).hexdigest()[:16]: Ed25519PublicKey.from_public_bytes(key) for key in keys}
        self._tenant = tenant
        self._known_heads = dict(heads or {})
        self._earlier = dict(earlier or {})
        self._named: dict[str, dict[int, str]] = {}
        """MACs of signed entries, by chain and number, until the entry is read."""
        self._digest, self._line, self._sealed = hashlib.sha256(), 0, 0
        self._counts: dict[str, int] = {}
        self._walked: dict[str, Head] = {}
        self._batches: dict[int, bytearray] = {}  # the signatures of the cuts of one change
        self._last_id = ""
        self._end: Line | None = None
        self.result = Verified()

    def verify(self, text: IO[bytes]) -> Verified:
        """Verify a whole export."""
        try:
            for raw in _lines(text):
                self._line += 1
                self._read_line(raw)
            self._close()
        except Broken as fault:
            self.result.report(self._line, str(fault))
        return self.result

    def _read_line(self, raw: bytes) -> None:
        line = _parse(raw)
        kind = line.get("type")
        if (self._line == 1) != (kind == "export"):
            raise Broken("the header must be the first line, and must occur once")
        if self._end is not None and (kind != "seal" or self._sealed == self._line - 1):
            raise Broken("there is a line after the end of the export")
        match kind:
            case "seal":
                self._check_seal(raw, line)
            case "export":
                self._read_header(line)
            case "head":
                self._follow_head(line)
            case "cut":
                self._follow_cut(line)
            case "entry":
                self._follow_entry(line)
            case "chain" | "anchor":
                self._compare(line)
            case "end":
                self._end = line
            case _:
                raise Broken(f"there is no line of the type {kind!r}")
        self._digest.update(raw)

    def _read_header(self, line: Line) -> None:
        self.result.tenant, self.result.made_at = str(line.get("tenant")), str(line.get("made_at"))
        self.result.wanted = line["filter"] if isinstance(line.get("filter"), dict) else {"filter": "unknown"}
        if line.get("format") != FORMAT:
            raise Broken(f"this program verifies format {FORMAT}, not {line.get('format')!r}")
        if self._tenant is not None and self.result.tenant != self._tenant:  # guard: verifier-tenant
            raise Broken(f"the export is of tenant {self.result.tenant!r}")

    def _check_seal(self, raw: bytes, line: Line) -> None:
        """Check a signature over all lines before it."""
        key = self._keys.get(str(line.get("key")))
        if key is None:
            raise Broken(f"the seal was made with another key: {line.get('key')!r}")
        seal = {"type": "seal", "lines": self._line - 1, "key": line["key"], "signature": line.get("signature")}
        if raw != json.dumps(seal, separators=(",", ":")).encode() + b"\n":  # guard: verifier-seal-form
            raise Broken("the seal is malformed, or its number of lines is wrong")
        digest = self._digest.hexdigest()
        signed = f"gateway audit export {FORMAT}\n{self.result.tenant}\n{self._line - 1}\n{digest}\n".encode()
        try:
            key.verify(bytes.fromhex(str(line["signature"])), signed)  # guard: verifier-seal
        except (InvalidSignature, ValueError):
            raise Broken(f"lines {self._sealed + 1} to {self._line - 1} differ from the export") from None
        self._sealed = self._line
        self.result.seals += 1

    def _follow_head(self, line: Line) -> None:
        """Check the next signature of the gateway, and store the MAC of the entry that the signature names."""
        signer, number, mac = f"heads:{_text(line, 'signer')}", _number(line, "number"), _text(line, "mac")
        self._check_tenant(line)
        self._check_next(signer, number, mac, line)
        self.result.heads += 1
        writer, seq = _text(line, "writer"), _number(line, "seq")
        if seq > 0 and not writer.startswith("heads:"):
            named = self._named.setdefault(writer, {})
            if named.setdefault(seq, _text(line, "head")) != line["head"]:
                self._report(f"two signatures name different entries {seq} of {writer}")
        if signer == f"heads:{_TRAIL}" and self._known_heads.pop(number, mac) != mac:  # guard: verifier-heads
            self._report(f"signature {number} differs from the heads file")

    def _follow_entry(self, line: Line) -> None:
        writer, seq, mac = _text(line, "writer"), _number(line, "seq"), _text(line, "mac")
        self._check_tenant(line)
        self.result.entries += 1
        if self.result.wanted:  # a filtered export lists entries in the order of their ids, so its chains have gaps
            if _text(line, "id") <= self._last_id:
                self._report("the entries are not ordered by id")
            self._last_id = line["id"]
            return
        self._check_next(writer, seq, mac, line)
        named = self._named.get(writer, {}).pop(seq, mac)
        if named != mac:  # guard: verifier-signed-entries
            self._report(f"entry {seq} of {writer} differs from the signed entry")
        if writer == "catalog" and line.get("action") == "audit.cut":
            records = hashlib.sha256(self._batches.pop(seq, b"")).hexdigest()
            if f'"digest":"{records}"' not in _text(line, "detail"):  # guard: verifier-cut-records
                self._report(f"the records of the cut {seq} differ from its entry")

    def _follow_cut(self, line: Line) -> None:
        """Begin a chain after the removed entries, if the record is signed and continues the previous record."""
        self._check_tenant(line)
        writer, first, last = _text(line, "writer"), _number(line, "first"), _number(line, "last")
        head = last, _text(line, "head"), _text(line, "content")
        signed = "\n".join(("gateway audit cut 1", *(str(line.get(name)) for name in _CUT.split()), "")).encode()
        try:
            signature = bytes.fromhex(_text(line, "signature"))
            self._keys[str(line.get("key"))].verify(signature, signed)  # guard: verifier-cut-signature
        except (InvalidSignature, KeyError, ValueError):
            raise Broken(f"the cut of {writer} up to {last} is not signed with a given key") from None
        before = max(made := self.result.cuts.setdefault(writer, []), default=_START)[0]
        if first != before + 1 or last < first:  # guard: verifier-cut-continues
            self._report(f"the cut of {writer} begins with entry {first}; the one before ends with {before}")
        made.append(head)
        self._batches.setdefault(_number(line, "revision"), bytearray()).extend(signature)
        named = self._named.get(writer, {})
        if named.get(last, head[1]) != head[1]:  # guard: verifier-cut-signed-entries
            self._report(f"the cut of {writer} ends with an entry {last} that differs from the signed entry")
        self._named[writer] = {number: mac for number, mac in named.items() if number > last}
        if self._earlier.get(writer, head)[0] <= last:
            self._earlier.pop(writer, None)
        self._walked[writer] = max(head, self._walked.get(writer, _START))

    def _check_tenant(self, line: Line) -> None:
        """Report a line that belongs to another tenant."""
        if line.get("tenant") != self.result.tenant:  # guard: verifier-own-lines
            self._report(f"the line is of tenant {line.get('tenant')!r}")

    def _check_next(self, writer: str, number: int, mac: str, line: Line) -> None:
        """Check the next line of a chain: its number follows, and its content equals that of the earlier export.

        A reader without the secret keys cannot verify MACs, so the contents are compared by an unkeyed hash.
        """
        last, _, before = self._walked.get(writer, _START)
        if number != last + 1:  # guard: verifier-gaps
            self._report(f"entry {number} of {writer} follows entry {last}")
        content = json.dumps(line, sort_keys=True, separators=(",", ":"))
        self._walked[writer] = number, mac, hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
        self._counts[writer] = self._counts.get(writer, 0) + 1
        earlier = self._earlier.get(writer)
        if earlier is not None and earlier[0] == number:
            del self._earlier[writer]
            if earlier != self._walked[writer]:  # guard: verifier-earlier
                self._report(f"entries of {writer} up to {number} differ from the earlier export")

    def _compare(self, line: Line) -> None:
        """Compare the lines with the numbers and states that the gateway reported."""
        if line["type"] == "anchor":
            if line.get("ok") is not True:
                self._report(f"the anchor has the state {line.get('state')!r}")
            number, head = _number(line, "number"), _text(line, "head")
            last, mac, _ = self._walked.get(f"heads:{_TRAIL}", _START)
            if last < number or (last == number and mac != head and number > 0):
                self._report(f"the anchor names signature {number}, the export ends with {last}")
            return
        writer = _text(line, "writer")
        end = (_number(line, "last"), _text(line, "head"))
        if self._walked.get(writer, _START)[:2] != end or self._counts.get(writer, 0) != line.get("entries"):
            self._report(f"the chain {writer} ends with another entry than the export declares")
        first = self.result.cuts.get(writer, [_START])[-1][0]
        if writer == "catalog" and any(first < number <= end[0] for number in self._batches):
            self._report("a cut has records, but no entry")  # guard: verifier-cut-has-an-entry
        if line.get("faults") != 0:
            self._report(f"the gateway found faults in the chain {writer}: {json.dumps(line.get('fault'))}")

    def _close(self) -> None:
        if self._end is None or self._sealed != self._line:  # guard: verifier-end
            raise Broken("the export has no end line: it is truncated")
        if self._end.get("entries") != self.result.entries:
            self._report(f"the export declares {self._end.get('entries')} entries, but contains {self.result.entries}")
        if self._end.get("ok") is not True:
            self._report("the gateway found faults in the trail at the export")
        if self.result.wanted:
            return
        for writer, named in sorted(self._named.items()):
            if named:
                self._report(f"the gateway signed entry {max(named)} of {writer}, which is missing")
        for writer, (number, *_) in sorted(self._earlier.items()):
            self._report(f"entry {number} of {writer} was in the earlier export, and is missing")
        last = self._walked.get(f"heads:{_TRAIL}", _START)[0]
        for number in sorted(self._known_heads):
            self._report(f"signature {number} is in the heads file; the export ends with {last}")
        self.result.ends = dict(self._walked)

    def _report(self, fault: str) -> None:
        self.result.report(self._line, fault)


def _lines(text: IO[bytes]) -> Iterator[bytes]:
    while raw := text.readline(_MAX_LINE_LENGTH):
        if not raw.endswith(b"\n"):
            raise Broken("the last line is truncated, or a line is too long")
        yield raw


def _parse(raw: bytes) -> Line:
    """Parse a line as a JSON object. Duplicate members are refused, because parsers differ in the one they keep."""

    def unique(members: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(members)
        if len(found) < len(members):  # guard: verifier-unique-members
            raise Broken("a line has two members of one name")
        return found

    try:
        line = json.loads(raw, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise Broken("the line is not JSON") from None
    if not isinstance(line, dict):
        raise Broken("the line is not an object")
    return cast("Line", line)


def _text(line: Line, name: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise Broken(f"the member {name!r} is missing or not a string")
    return value


def _number(line: Line, name: str) -> int:
    value = line.get(name)
    if type(value) is not int:
        raise Broken(f"the member {name!r} is missing or not a number")
    return value


def read_heads(text: Iterable[str], tenant: str | None) -> Mapping[int, str]:
    """Return the heads of a tenant in a file of `GATEWAY_AUDIT_HEADS`: MACs by signature number."""
    found: dict[int, str] = {}
    for line in text:
        head = json.loads(line)
        if tenant is None:
            raise ValueError("--heads needs --tenant")
        if head["tenant"] == tenant and head["number"] > 0:
            found[int(head["number"])] = str(head["head"])
    return found


def verify_file(
    export: str, keys: Sequence[str], *, tenant: str | None, heads: Path | None, earlier: Path | None
) -> Verified:
    """Verify an export in a file, or on the standard input if the name is `-`.

    Raises:
        OSError: a file cannot be read.
        ValueError: a key or the heads file is malformed, or the earlier export is not complete.
    """
    public = [bytes.fromhex(key) for key in keys]
    known = read_heads(heads.read_text(encoding="utf-8").splitlines() if heads else (), tenant)
    before: Verified | None = None
    if earlier is not None:
        with earlier.open("rb") as text:
            before = ExportVerifier(public, tenant=tenant).verify(text)
        if not before.is_whole or before.wanted:
            raise ValueError(f"{earlier} is not complete for these keys: {[*before.faults, 'it has a filter'][0]}")
        tenant = before.tenant
    verifier = ExportVerifier(public, tenant=tenant, heads=known, earlier=before.ends if before else {})
    with sys.stdin.buffer if export == "-" else Path(export).open("rb") as text:
        found = verifier.verify(text)
    if earlier and before:
        _compare_cuts(found, before, earlier, public)
    return found


def _compare_cuts(found: Verified, before: Verified, earlier: Path, keys: Sequence[bytes]) -> None:
    """Compare cuts with those of the earlier export, and with its entries up to the last cut of each chain."""
    for writer, made in before.cuts.items():
        if found.cuts.get(writer, [])[: len(made)] != made:  # guard: verifier-earlier-cuts
            found.report(0, f"a cut of {writer} in the earlier export is missing or differs")
    reached = {writer: head[0] for writer, head in before.ends.items()}
    ends = {writer: one for writer, made in found.cuts.items() for one in made if one[0] <= reached.get(writer, 0)}
    with earlier.open("rb") as text:
        again = ExportVerifier(keys, earlier=ends).verify(text)
    found.faults += [f"earlier export, {fault}" for fault in again.faults]  # guard: verifier-cut-earlier-entries


def render(found: Verified) -> str:
    """Render the result as text."""
    counted = f"{found.entries} {'entries that matched the filter' if found.wanted else 'entries'}"
    counted += f", {found.heads} signatures, {found.seals} seals"
    removed = sum(made[-1][0] for made in found.cuts.values())
    counted += f", {removed} entries removed by retention" if found.cuts else ""
    title = f"{'ok' if found.is_whole else 'NOT ok'}: {counted}; tenant {found.tenant}, exported {found.made_at}"
    return "\n".join([title, *found.faults])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Verify an exported audit trail of the gateway.")
    parser.add_argument("export", help="the file, or - for the standard input")
    parser.add_argument("--key", action="append", required=True, help="a public key of the tenant, in hexadecimal")
    parser.add_argument("--tenant", help="the id that the tenant must have")
    parser.add_argument("--heads", type=Path, help="a file of heads, which must be in the trail")
    parser.add_argument("--earlier", type=Path, help="an earlier complete export; its entries must still exist")
    given = parser.parse_args(arguments)
    try:
        found = verify_file(given.export, given.key, tenant=given.tenant, heads=given.heads, earlier=given.earlier)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot verify: {error}".translate(_ESCAPES), file=sys.stderr)
        return 2
    print(render(found).translate(_ESCAPES))  # guard: verifier-controls
    return 0 if found.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
