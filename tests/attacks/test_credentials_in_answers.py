"""Upstreams that echo the credential they were sent, in every encoding that servers use: agents never see it."""

import base64
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential, NamedCredential, UpstreamResponse
from gateway.errors import GatewayError, TokenRefused
from gateway.handlers.redaction.redaction import Redactor
from gateway.upstream.auth.token_endpoint import client_credentials, fetch_token
from gateway.upstream.client import UpstreamClient
from tests.support.encodings import ENCODINGS, Encoding
from tests.support.handler_bench import ACME, HandlerBench
from tests.support.upstream import RecordingUpstream, recording_upstream

SECRETS = ('aB3/xY9+Qw=&<k>"7-zz', "sk-live-9aF3kQ7xZ2mN8pR4tV6wY1bC5dE0gHjK")
TEXTS = ("text/plain", "text/html; charset=utf-8", "application/xml", "text/event-stream", "application/x-ndjson", "")
CHARSETS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1")


@dataclass(frozen=True, slots=True)
class Echo:
    """A tenant with primitives of every family, all of which ask one upstream with one credential."""

    house: HandlerBench
    api: RecordingUpstream

    def keeps(self, secret: str) -> None:
        self.house.secrets.held["api"] = NamedCredential(
            place="header", credential=Credential(value=secret), origins=(self.api.url,), field="X-Key"
        )

    async def shown(self) -> str:
        """The result of a call of the tool: its texts, blobs and structure, decoded from the JSON of the protocol."""
        return _shown(await self.house.call("reads"))


@pytest.fixture
async def echo() -> AsyncGenerator[Echo]:
    async with recording_upstream() as api, UpstreamClient(egress_allow=[api.authority]) as upstream:
        house = HandlerBench(upstream)
        request: dict[str, Any] = {"method": "GET", "url": f"{api.url}/x", "credential": "api"}
        house.has_tool("reads", {"kind": "http", **request})
        house.has_tool(
            "steps", {"kind": "steps", "steps": [{"http": request, "as": "x"}, {"return": {"json": "{{ x }}"}}]}
        )
        house.has_resource("note://1", {"kind": "http", **request})
        house.has_prompt("says", {"kind": "http", **request})
        lookup = {"url": f"{api.url}/x", "credential": "api"}
        completed = {"kind": "template", "text": "{{ city }}", "completions": {"city": {"http": lookup}}}
        house.has_prompt("visits", completed, "city")
        yield Echo(house, api)


def _texts(value: object) -> list[str]:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return [text for name, member in members.items() for text in (str(name), *_texts(member))]
    if isinstance(value, list | tuple):
        return [text for member in cast("Sequence[object]", value) for text in _texts(member)]
    return [str(value)]


def _shown(value: object) -> str:
    return "\n".join(_texts(value))


def _reveals(shown: str, encoding: Encoding, secret: str) -> bool:
    """True if the secret can be read: as it is, in its encoding, or in the JSON of a text."""
    plain = shown.replace("\0", "")
    return any(secret in text for text in (plain, encoding.decode(plain), encoding.decode(plain.replace("\\\\", "\\"))))


def cases(encodings: Sequence[Encoding]) -> pytest.MarkDecorator:
    """Each encoding of both secrets; the second has no symbols, so many of its encodings are the same text."""
    texts = {(secret, one.encode(secret)): (one, secret) for secret in SECRETS for one in reversed(encodings)}
    found = [pytest.param(one, secret, id=f"{one}-{SECRETS.index(secret)}") for one, secret in texts.values()]
    return pytest.mark.parametrize(("encoding", "secret"), found)


@cases(ENCODINGS)
def test_the_table_gives_the_secret_back(encoding: Encoding, secret: str) -> None:
    """Ours: every row below would show the secret if nothing were redacted (ISO-4)."""
    assert _reveals(f"before {encoding.encode(secret)} after", encoding, secret)


@pytest.mark.parametrize(
    "form",
    [
        "Bearer {}",
        "bearer\t{} ",
        "Token token={}, nonce=aaaabbbbcccc",
        'Digest username="x", response="{}"',
        "ApiKey first, key='{}'",
        "sid={}; version=2",
    ],
)
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_no_encoding_of_a_part_of_a_credential_is_shown(encoding: Encoding, form: str) -> None:
    """Attack: the upstream echoes the token or a parameter of a value that is stored with its scheme (ISO-4)."""
    secret = SECRETS[1]
    redactor = Redactor((Credential(value=form.format(secret)),))
    for text in (secret, f'{{"token": "{secret}"}}', f"{secret}, version=2"):
        encoded = encoding.encode(text)
        for kind, body in (
            ("text/plain", f"before {encoded} after".encode()),
            ("application/json", json.dumps({"echo": encoded, "version": 2, "user": "x"}).encode()),
        ):
            shown = redactor.redact(UpstreamResponse(status=200, content_type=kind, body=body)).body.decode()
            assert not _reveals(shown, encoding, secret)
            assert kind == "text/plain" or json.loads(shown)["version"] == 2


def test_the_pair_of_a_basic_header_is_a_credential() -> None:
    """Attack: the upstream echoes the password of a complete `Basic` header that is stored as an API key (ISO-4)."""
    stored = f"Basic {base64.b64encode(f'ann:{SECRETS[1]}'.encode()).decode()}"
    answer = UpstreamResponse(status=200, content_type="text/plain", body=f"ann: {SECRETS[1]}".encode())
    assert Redactor((Credential(value=stored),)).redact(answer).body == b"ann: ***"


@cases(ENCODINGS)
async def test_no_encoding_of_a_credential_is_shown(echo: Echo, encoding: Encoding, secret: str) -> None:
    """Ours: in a JSON value or name, text of every kind, bytes, an error, a stream and a header (ISO-4)."""
    echo.keeps(secret)
    encoded = encoding.encode(secret)
    raw = encoded if "\\" in encoded else json.dumps(encoded)[1:-1]
    bodies = [
        ("application/json", f'{{"a":1,"echo":"before {raw} after"}}'.encode()),
        ("application/json", json.dumps([{f"X {encoded} ": [1.5, None]}]).encode()),
        ("application/json", json.dumps(json.dumps({"inner": encoded})).encode()),
        ("application/json", json.dumps({"echo": encoded}).encode("utf-16")),
        ("image/png", b"\x89PNG\r\n\xff" + encoded.encode() + b"\xff\0"),
        ("application/octet-stream", encoded.encode("utf-16-le")),
        *((kind, f"<p>data: {encoded}</p>\n\n".encode()) for kind in TEXTS),
        *((f"text/plain; charset={charset}", f"is: {encoded}".encode(charset)) for charset in CHARSETS),
        ("text/plain", encoded.encode("utf-16-le")),
    ]
    for status, sent in ((200, bodies), (422, bodies[::4])):
        echo.api.status = status
        for kind, body in sent:
            echo.api.content_type, echo.api.body = kind, body

            answer = await echo.house.call("reads")

            shown = _shown(answer)
            assert "***" in shown or "Kioq" in shown or status != 200, (kind, shown)
            assert not _reveals(shown, encoding, secret), (kind, shown)


_ONE_LINE = [one for one in ENCODINGS if one.name not in {"base64_in_lines", "quoted_printable"}]


@cases(_ONE_LINE)
async def test_no_header_shows_a_credential(echo: Echo, encoding: Encoding, secret: str) -> None:
    """Ours: shown headers of refusals and redirects are redacted as bodies are (ISO-4)."""
    echo.keeps(secret)
    encoded = encoding.encode(secret)
    echo.api.content_type, echo.api.body = f"application/x-{encoded}", b"\x00\xff"
    echo.api.headers = (
        ("Retry-After", f"3 {encoded}"[:60]),
        ("Location", f"https://{encoded}.example/{encoded}"),
        ("Link", f"<https://api.example/?page={'0' * 900}{encoded}>; rel=next"),
        ("ETag", f'"{encoded}"'),
    )
    for status in (200, 201, 302, 503):
        echo.api.status = status

        assert not _reveals(await echo.shown(), encoding, secret)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
async def test_no_family_shows_a_credential(echo: Echo, encoding: Encoding) -> None:
    """Ours: steps, resources, prompts and completions see redacted answers, text and bytes (ISO-4)."""
    secret = SECRETS[0]
    echo.keeps(secret)
    encoded = encoding.encode(secret)
    for kind, body in (
        ("application/json", json.dumps([encoded, f"x {encoded}"]).encode()),
        ("text/plain", encoded.encode()),
        ("image/png", b"\xff" + encoded.encode()),
    ):
        echo.api.content_type, echo.api.body = kind, body
        found: list[object] = [(await echo.house.read("note://1")).contents, await echo.house.call("steps")]
        if kind != "image/png":
            found.append((await echo.house.get("says")).messages)
        if kind == "application/json":
            found.append((await echo.house.complete("visits", "city", "")).values)
        for shown in found:
            assert not _reveals(_shown(shown), encoding, secret), shown


def _redacted(secret: str, kind: str, body: bytes, *, username: str | None = None) -> bytes:
    answer = UpstreamResponse(status=200, content_type=kind, body=body)
    return Redactor((Credential(value=secret, username=username),)).redact(answer).body


def test_the_text_around_a_credential_stays() -> None:
    """Ours: JSON stays JSON and keeps all other values as they were written (ISO-4)."""
    body = b'{"n":1.50,"t":"\\u00e9\\"","u":"https:\\/\\/x\\/?k=aB3\\/xY9%2BQw%3d&q=1","big":123456789012345678901}'

    assert _redacted("aB3/xY9+Qw=", "application/json", body) == body.replace(b"aB3\\/xY9%2BQw", b"***")
    assert _redacted("aB3/xY9+Qw=", "text/plain", b"k=aB3&sol;xY9+Qw= x") == b"k=***= x"
    assert _redacted("aB3/xY9", "image/png", b"\x89aB3/xY9\xff") == b"\x89*******\xff"


def test_a_credential_that_is_a_number_is_blanked_as_one() -> None:
    """Ours: JSON with a number taken out is JSON still (ISO-4)."""
    assert (
        _redacted("8675309123", "application/json", b'{"pin": 8675309123, "n": [1,2]}') == b'{"pin": "***", "n": [1,2]}'
    )


def test_a_login_is_not_shown_in_base64_even_with_a_short_password() -> None:
    """Ours: user name and password as one text count together (ISO-4)."""
    assert _redacted("abc", "text/plain", b"Basic YWxpY2U6YWJj.", username="alice") == b"Basic ***."
    assert _redacted("abc", "text/plain", b"abc", username="alice") == b"abc"


@pytest.mark.parametrize("secret", ["pässwörd-ключ", "key 🔑 of 🐘", "日本語のパスワード"])
def test_secrets_of_other_scripts_are_found(secret: str) -> None:
    """Ours: surrogate pairs in both cases, UTF-8 and UTF-16 bytes, references, charsets (ISO-4)."""
    escaped = json.dumps(secret)[1:-1]
    upper = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda one: one[0].upper(), escaped)
    percent = "".join(f"%{byte:02x}" for byte in secret.encode())
    html = "".join(f"&#x{ord(one):x};" for one in secret)
    for text in (secret, escaped, upper, percent, html, "".join(f"\\x{byte:02x}" for byte in secret.encode())):
        assert _redacted(secret, "text/plain", f"<{text}>".encode()) == b"<***>"
        assert json.loads(_redacted(secret, "application/json", json.dumps([text]).encode())) == ["***"]
    for charset in ("utf-16-le", "utf-16-be"):
        assert b"***" in _redacted(secret, f"text/plain; charset={charset}", f"is {secret}".encode(charset))
        assert set(_redacted(secret, "image/png", secret.encode(charset))) <= {ord("*"), 0}


@pytest.mark.parametrize(
    ("secret", "charset"),
    [("pässwörd-geheim", "iso-8859-1"), ("ключ-от-двери", "koi8-r"), ("日本語のパスワード", "shift_jis")],
)
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_secrets_are_found_in_the_charset_of_the_text(kind: str, secret: str, charset: str) -> None:
    """Ours: the bytes of a charset are no form of the secret; its text is (ISO-4)."""
    found = _redacted(secret, f"{kind}; charset={charset}", f"is {secret}.".encode(charset))

    assert found == b"is ***."


@pytest.mark.parametrize(
    "piece", [b"&", b"%", b"\\u", b"%41", b"%41x", b"&#65;", b"&amp;", b"\\", b"&#0", b"\0", b"%25", b"25"]
)
def test_a_body_of_escapes_is_compared_in_bounded_work(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: each round compares the body once, in windows that overlap by half at most; rounds are bounded (ISO-4)."""
    seen: list[int] = []

    def counting(text: bytes) -> bytes:
        seen.append(len(text))
        return text.translate(None, b" \t\r\n\v\f\0+=\\")

    monkeypatch.setattr("gateway.handlers.redaction.redaction.squeeze", counting)
    body = piece * (1024 * 1024 // len(piece))

    _redacted(SECRETS[1], "text/plain", body)

    assert sum(seen) <= 2 * 7 * len(body) + 64 * 1024


def test_an_answer_that_is_nothing_but_credentials_is_replaced_whole() -> None:
    """Ours: thousands of places are not redacted one by one (ISO-4)."""
    assert _redacted(SECRETS[1], "application/json", json.dumps([SECRETS[1]] * 5000).encode()) == b'"***"'
    assert _redacted(SECRETS[1], "text/plain", (SECRETS[1] + "\n").encode() * 5000) == b"***"


async def test_failures_do_not_contain_the_credential(echo: Echo) -> None:
    """Ours: an unreadable answer is named by its fault alone (ISO-4)."""
    echo.keeps(SECRETS[0])
    echo.api.content_type, echo.api.body = "application/json", SECRETS[0].encode()
    with pytest.raises(GatewayError) as refused:
        await echo.house.complete("visits", "city", "")

    assert SECRETS[0] not in str(refused.value)


async def test_a_token_endpoint_cannot_have_its_error_shown() -> None:
    """Ours: only registered error codes are named, so a secret in the place of one is not shown (ISO-4)."""
    credential = Credential(value="abcdefghijkl_secret", username="me")
    async with recording_upstream() as api, UpstreamClient(egress_allow=[api.authority]) as upstream:
        api.status, api.body = 400, b'{"error":"abcdefghijkl_secret"}'
        scheme = SchemePlan(name="oauth", kind=SchemeKind.CLIENT_CREDENTIALS, token_url=f"{api.url}/token")
        with pytest.raises(TokenRefused) as refused:
            await fetch_token(upstream, ACME.tenant, client_credentials(scheme, credential))

    assert "abcdefghijkl" not in str(refused.value)
