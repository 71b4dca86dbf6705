"""The pages of approvals in Chromium: with the keyboard alone, without scripts, as a screen reader has them."""

import pytest

from gateway.domain.calls.approvals import ApprovalState, RequestShown
from tests.behaviour.console.conftest import Desk
from tests.behaviour.console.test_pages import HOSTILE
from tests.support.chromium import Browser, open_page


async def sign_in(browser: Browser, desk: Desk, path: str) -> None:
    """Open a page, and sign in with the keyboard; the field has the focus."""
    await browser.open(desk.url + path)
    await browser.focused("INPUT|key")
    await browser.type(desk.key)
    await browser.press("Enter", loads=True)


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_person_decides_with_the_keyboard_alone(browser: Browser, desk: Desk, scripts: bool) -> None:
    """Ours: sign in, read, deny with a comment, approve another; also in a browser without scripts (SAF-3)."""
    first, second = await desk.ask(), await desk.ask(tool="drop_table")
    if not scripts:
        await browser.send("Emulation.setScriptExecutionDisabled", value=True)
    await sign_in(browser, desk, f"/approvals/{first.id}")
    shown = await browser.text()
    assert "DELETE https://pets.example/pets/7?force=true" in shown
    passed = await browser.tab_to("TEXTAREA|comment")
    assert "Skip to the content" in passed[0]
    await browser.type("not on a Friday")
    await browser.tab_to("BUTTON|verdict|deny")
    await browser.press("Enter", loads=True)
    assert "Denied by Ada" in await browser.text()
    await browser.open(f"{desk.url}/approvals")
    await browser.tab_to("drop_table")
    await browser.press("Enter", loads=True)
    await browser.tab_to("BUTTON|verdict|approve")
    await browser.press(" ", loads=True)
    assert "Approved by Ada" in await browser.text()

    denied, approved = await desk.now(first.id), await desk.now(second.id)
    assert (denied.state, denied.comment) == (ApprovalState.DENIED, "not on a Friday")
    assert (approved.state, approved.comment) == (ApprovalState.APPROVED, "")
    await browser.tab_to("Sign out")
    await browser.press("Enter", loads=True)
    assert "Key with the scope approve" in await browser.text()


async def test_a_screen_reader_has_names_for_everything(browser: Browser, desk: Desk) -> None:
    """WCAG 2.2: landmarks, headings in order, labels, and names of all that can have the focus (SAF-3)."""
    approval = await desk.ask()
    await browser.open(f"{desk.url}/approvals/{approval.id}")
    assert ("textbox", "Key with the scope approve") in await browser.names()
    await sign_in(browser, desk, f"/approvals/{approval.id}")
    names = await browser.names()
    for expected in [
        ("main", ""),
        ("navigation", "Approvals"),
        ("heading", "Call of delete_pet"),
        ("heading", "Request"),
        ("region", "Decision"),
        ("textbox", "Comment (the requester sees the comment of a denial)"),
        ("button", "Approve"),
        ("button", "Deny"),
    ]:
        assert expected in names, names
    assert all(name for role, name in names if role in {"button", "link", "textbox", "region", "heading"})
    levels = await browser.ask("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels == [1, 2, 2, 2, 2, 2]
    assert await browser.ask("document.documentElement.lang") == "en"
    assert await browser.ask("getComputedStyle(document.querySelector('pre')).unicodeBidi") == "bidi-override"


async def test_pages_fit_a_phone(browser: Browser, desk: Desk) -> None:
    """WCAG 2.2 reflow: no page is wider than a phone, and no cell of a table is as narrow as a few letters (SAF-3)."""
    approval = await desk.ask()
    await browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    await sign_in(browser, desk, "/approvals")
    for path in ("/approvals", f"/approvals/{approval.id}", "/docs/errors"):
        await browser.open(desk.url + path)
        assert await browser.ask("document.querySelectorAll('h1').length") == 1, path
        assert await browser.ask("document.documentElement.scrollWidth <= innerWidth"), path
        assert await browser.ask("[...document.querySelectorAll('td')].every(cell => cell.clientWidth >= 80)"), path


async def test_hostile_texts_do_nothing_in_a_browser(browser: Browser, desk: Desk) -> None:
    """Ours: no text of a caller runs, breaks out, loads or reverses anything (SAF-3)."""
    for text in HOSTILE:
        request = RequestShown(method="POST", url=text, headers=((text, text),), body=text + "x" * 100_000)
        earlier = await desk.ask(request, tool=text, subject=text, warnings=(text,))
        await sign_in(browser, desk, f"/approvals/{earlier.id}") if text == HOSTILE[0] else await browser.open(
            f"{desk.url}/approvals/{earlier.id}"
        )
        assert await browser.ask("document.scripts.length + document.images.length") == 0
        assert await browser.ask("document.forms.length") == 2
        assert await browser.ask("[...document.querySelectorAll('form')].every(f => f.action.startsWith(origin))")
        assert await browser.ask("document.querySelectorAll('main').length") == 1
    await browser.open(f"{desk.url}/approvals")
    assert len(await browser.ask("[...document.querySelectorAll('tbody tr')].map(r => r.innerText)")) == len(HOSTILE)


async def test_the_browser_reports_what_the_policy_forbids(desk: Desk, chromium: str) -> None:
    """Ours: a script that a page must not have is noticed, so silence means something (SAF-3)."""
    async with open_page(chromium) as browser:
        await sign_in(browser, desk, "/approvals")
        assert browser.faults == []
        inject = "s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        await browser.ask(inject)
        assert await browser.ask("window.ran") is None
        assert browser.faults != []
