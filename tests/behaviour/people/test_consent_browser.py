"""The consent page in Chromium: with the keyboard alone, as a screen reader has it, and with hostile names."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest

from gateway.domain.text_search.invisible import ESCAPED
from tests.support.authorization import CHALLENGE, Application, register
from tests.support.certificates import self_signed
from tests.support.chromium import Browser, open_page
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream, Seen, recording_upstream

FORGED_BACK = "https://xn--nthropic-06g.example/callback"
FORGED_NAMES = {
    "</bdi></q><h1>Verified</h1><img src=x onerror=alert(1)><script>alert(1)</script>": (
        "</bdi></q><h1>Verified</h1><img src=x onerror=alert(1)><script>alert(1)</script>"
    ),
    "\u202emoc.elpmaxe\u2066\u200b\u3164\u2800\U000e0041": "\\u202emoc.elpmaxe\\u2066\\u200b\\u3164\\u2800\\ue0041",
    "\u3164 \u2800": "\\u3164 \\u2800",
    "\N{CYRILLIC CAPITAL LETTER ES}laude": "\N{CYRILLIC CAPITAL LETTER ES}laude",
    "W" * 5000: "W" * 80 + "… (200 characters in all)",
    "Z" + "\N{COMBINING GRAVE ACCENT}" * 99: "Z" + "\N{COMBINING GRAVE ACCENT}" * 79 + "… (100 characters in all)",
}
"""Names in metadata documents, and what the page shows of them."""


@dataclass(slots=True)
class Forger:
    """A server of metadata documents with chosen names, and the browser of the person to deceive."""

    application: Application
    documents: RecordingUpstream
    browser: Browser

    def respond(self, seen: Seen) -> bytes:
        """The document at a path `/NUMBER.json`."""
        name = list(FORGED_NAMES)[int(seen.target.strip("/.json"))]
        client_id = f"https://{self.documents.authority}{seen.target}"
        return orjson.dumps({"client_id": client_id, "client_name": name, "redirect_uris": [FORGED_BACK]})

    async def open(self, number: int, name: str) -> None:
        """Open the consent page of a document."""
        assert name in FORGED_NAMES
        client_id = f"https://{self.documents.authority}/{number}.json"
        await self.browser.open(_begin(replace(self.application, client_id=client_id)))


@pytest.fixture
async def application(gateway: RunningGateway, stand: Stand) -> AsyncGenerator[Application]:
    """An application whose codes go to a server on loopback; its person has signed in."""
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(stand.upstreams[0]))
    await add_provider(gateway, "acme", provider)
    back = f"{stand.upstreams[1].url}/callback"
    client = await register(gateway, name="Reports", redirect_uris=[back])
    async with http_client(timeout=30) as http:
        application = Application(gateway, provider, client["id"], http, redirect_uri=back)
        await application.open()
        yield application


@pytest.fixture
async def browser(application: Application, chromium: str) -> AsyncGenerator[Browser]:
    """A browser with the session of the person, whose pages do nothing that they must not do."""
    async with open_page(chromium) as started:
        await _add_cookies(started, application)
        yield started
        assert started.faults == []


async def _add_cookies(browser: Browser, application: Application) -> None:
    for name, value in application.http.cookies.items():
        url = f"{application.gateway.url}/t/acme/"
        await browser.send("Network.setCookie", name=name, value=value, url=url, path="/t/acme/")


@pytest.fixture
async def forger(
    servers: TestServers, chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Forger]:
    """A server of metadata documents that the gateway trusts, and the browser of a person who has signed in."""
    certificate = self_signed(tmp_path, "client.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the gateway reads it when it starts
    with servers.database() as database:
        async with (
            recording_upstream() as issuer,
            recording_upstream(certificate) as documents,
            running_gateway(
                database.app_url, servers.empty_redis(), egress_allow=[issuer.authority, documents.authority]
            ) as gateway,
            http_client(timeout=30) as http,
            open_page(chromium) as browser,
        ):
            await gateway.create_tenant("acme")
            provider = LocalProvider(new_issuer(issuer))
            await add_provider(gateway, "acme", provider)
            application = Application(gateway, provider, "-", http, redirect_uri=FORGED_BACK)
            forger = Forger(application, documents, browser)
            documents.respond = forger.respond
            await application.follow(await http.get(f"{application.issuer}/sign-in"))
            await _add_cookies(browser, application)
            yield forger
            assert browser.faults == []


async def test_forged_metadata_deceives_neither_by_names_nor_by_hosts(forger: Forger) -> None:
    """Ours: a person sees the hosts of document and redirect, and the name as one line of harmless text (IDN-2).

    Consent phishing: HTML, bidirectional and invisible characters, look-alike letters, names that fill the page.
    """
    browser, host = forger.browser, forger.documents.authority
    await browser.send("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=False)
    for number, (name, expected) in enumerate(FORGED_NAMES.items()):
        await forger.open(number, name)
        shown = await browser.text()
        assert f"Identified by\n{host}" in shown, shown
        assert f"Sends you back to\n{urlsplit(FORGED_BACK).netloc}" in shown
        assert f"The application is that of {host}, and sends you to another host" in shown
        assert "The name of a host has letters that can look like others." in shown
        assert ("its name has letters that can look like others" in shown.lower()) is ("laude" in name), name
        assert await browser.ask("document.querySelector('q').textContent") == expected
        assert ESCAPED.search(shown.replace("\n", "")) is None, ascii(shown)
        # neither markup of the name nor its size has moved or covered anything
        assert (
            await browser.ask("document.querySelectorAll('h1, img, script, q *, a:not([href^=\\'/t\\'])').length") == 3
        )
        assert await browser.ask("document.documentElement.scrollWidth <= innerWidth"), name
        assert await browser.ask("getComputedStyle(document.querySelector('q bdi')).overflowX") == "clip"
        assert await browser.ask("document.querySelector('q').getBoundingClientRect().height < 200"), name
        assert {("button", "Allow"), ("button", "Do not allow")} <= set(await browser.names())
    assert {seen.target for seen in forger.documents.seen} == {f"/{each}.json" for each in range(len(FORGED_NAMES))}


def _begin(application: Application) -> str:
    query = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": application.redirect_uri,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "s",
    }
    return f"{application.issuer}/oauth/authorize?{urlencode(query)}"


@pytest.mark.parametrize(("button", "answer"), [("BUTTON|choice|allow", "code"), ("BUTTON|choice|deny", "error")])
async def test_a_person_decides_with_the_keyboard_and_without_scripts(
    browser: Browser, application: Application, button: str, answer: str
) -> None:
    """WCAG 2.2: names for all that can have the focus, and a way for the keyboard; the code leaves (IDN-2)."""
    await browser.send("Emulation.setScriptExecutionDisabled", value=True)
    await browser.open(_begin(application))
    names = await browser.names()
    for expected in [
        ("main", ""),
        ("heading", "Allow an application"),
        ("region", "Before you allow"),
        ("button", "Allow"),
        ("button", "Do not allow"),
        ("link", "Sign in as another person"),
    ]:
        assert expected in names, names
    assert all(name for role, name in names if role in {"button", "link", "region", "heading"})
    shown = await browser.text()
    assert "corp:ada" in shown
    assert "a program on this computer (127.0.0.1)" in shown

    await browser.tab_to(button)
    await browser.press("Enter", loads=True)

    place = urlsplit(str(await browser.ask("location.href")))
    assert f"{place.scheme}://{place.netloc}{place.path}" == application.redirect_uri
    query = parse_qs(place.query)
    assert (query.keys() - {"code", "error"}, answer in query) == ({"state", "iss"}, True)
