"""The consent page in Chromium: with the keyboard alone, as a screen reader has it, and with hostile names."""

from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from tests.support.authorization import CHALLENGE, Application, register
from tests.support.chromium import Browser, open_page
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.serving import NO_TLS
from tests.support.stand import Stand


@pytest.fixture
async def application(gateway: RunningGateway, stand: Stand) -> AsyncGenerator[Application]:
    """An application whose codes go to a server on loopback; its person has signed in."""
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(stand.upstreams[0]))
    await add_provider(gateway, "acme", provider)
    back = f"{stand.upstreams[1].url}/callback"
    client = await register(gateway, name="Reports", redirect_uris=[back])
    async with httpx.AsyncClient(verify=NO_TLS, trust_env=False, timeout=30) as http:
        application = Application(gateway, provider, client["id"], http, redirect_uri=back)
        await application.open()
        yield application


@pytest.fixture
async def browser(application: Application, chromium: str) -> AsyncGenerator[Browser]:
    """A browser with the session of the person, whose pages do nothing that they must not do."""
    async with open_page(chromium) as started:
        for name, value in application.http.cookies.items():
            url = f"{application.gateway.url}/t/acme/"
            await started.send("Network.setCookie", name=name, value=value, url=url, path="/t/acme/")
        yield started
        assert started.faults == []


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
