"""The pages of approvals in Chromium: with the keyboard alone, without scripts, as a screen reader has them."""

import pytest

from gateway.domain.calls.approvals import ApprovalState, RequestShown
from tests.behaviour.console.conftest import ConsoleBench
from tests.behaviour.console.test_pages import HOSTILE
from tests.support.chromium import Browser, open_page


async def sign_in(browser: Browser, bench: ConsoleBench, path: str) -> None:
    """Open a page, and sign in with the keyboard; the field has the focus."""
    await browser.open(bench.url + path)
    await browser.focused("INPUT|key")
    await browser.type(bench.key)
    await browser.press("Enter", loads=True)


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_person_decides_with_the_keyboard_alone(browser: Browser, bench: ConsoleBench, scripts: bool) -> None:
    """Ours: sign in, read, deny with a comment, approve another; also in a browser without scripts (SAF-3)."""
    first, second = await bench.ask(), await bench.ask(tool="drop_table")
    if not scripts:
        await browser.send("Emulation.setScriptExecutionDisabled", value=True)
    await sign_in(browser, bench, f"/approvals/{first.id}")
    shown = await browser.text()
    assert "DELETE https://pets.example/pets/7?force=true" in shown
    passed = await browser.tab_to("TEXTAREA|comment")
    assert "Skip to the content" in passed[0]
    await browser.type("not on a Friday")
    await browser.tab_to("BUTTON|verdict|deny")
    await browser.press("Enter", loads=True)
    assert "Denied by Ada" in await browser.text()
    await browser.open(f"{bench.url}/approvals")
    await browser.tab_to("drop_table")
    await browser.press("Enter", loads=True)
    await browser.tab_to("BUTTON|verdict|approve")
    await browser.press(" ", loads=True)
    assert "Approved by Ada" in await browser.text()

    denied, approved = await bench.now(first.id), await bench.now(second.id)
    assert (denied.state, denied.comment) == (ApprovalState.DENIED, "not on a Friday")
    assert (approved.state, approved.comment) == (ApprovalState.APPROVED, "")
    await browser.tab_to("Sign out")
    await browser.press("Enter", loads=True)
    assert "Key with the scope approve" in await browser.text()


async def test_a_screen_reader_has_names_for_everything(browser: Browser, bench: ConsoleBench) -> None:
    """WCAG 2.2: landmarks, headings in order, labels, and names of all that can have the focus (SAF-3)."""
    approval = await bench.ask()
    await browser.open(f"{bench.url}/approvals/{approval.id}")
    assert ("textbox", "Key with the scope approve") in await browser.names()
    await sign_in(browser, bench, f"/approvals/{approval.id}")
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


async def test_pages_fit_a_phone(browser: Browser, bench: ConsoleBench) -> None:
    """WCAG 2.2 reflow: no page is wider than a phone, and no cell of a table is as narrow as a few letters (SAF-3)."""
    approval = await bench.ask()
    await browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    await sign_in(browser, bench, "/approvals")
    for path in ("/approvals", f"/approvals/{approval.id}", "/docs/errors"):
        await browser.open(bench.url + path)
        assert await browser.ask("document.querySelectorAll('h1').length") == 1, path
        assert await browser.ask("document.documentElement.scrollWidth <= innerWidth"), path
        assert await browser.ask("[...document.querySelectorAll('td')].every(cell => cell.clientWidth >= 80)"), path


async def test_hostile_texts_do_nothing_in_a_browser(browser: Browser, bench: ConsoleBench) -> None:
    """Ours: no text of a caller runs, breaks out, loads or reverses anything (SAF-3)."""
    for text in HOSTILE:
        request = RequestShown(method="POST", url=text, headers=((text, text),), body=text + "x" * 100_000)
        earlier = await bench.ask(request, tool=text, subject=text, warnings=(text,))
        await sign_in(browser, bench, f"/approvals/{earlier.id}") if text == HOSTILE[0] else await browser.open(
            f"{bench.url}/approvals/{earlier.id}"
        )
        assert await browser.ask("document.scripts.length + document.images.length") == 0
        assert await browser.ask("document.forms.length") == 2
        assert await browser.ask("[...document.querySelectorAll('form')].every(f => f.action.startsWith(origin))")
        assert await browser.ask("document.querySelectorAll('main').length") == 1
    await browser.open(f"{bench.url}/approvals")
    assert len(await browser.ask("[...document.querySelectorAll('tbody tr')].map(r => r.innerText)")) == len(HOSTILE)


async def test_the_browser_reports_forbidden_scripts(bench: ConsoleBench, chromium: str) -> None:
    """Ours: a script that a page must not have is noticed, so silence means something (SAF-3)."""
    async with open_page(chromium) as browser:
        await sign_in(browser, bench, "/approvals")
        assert browser.faults == []
        inject = "s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        await browser.ask(inject)
        assert await browser.ask("window.ran") is None
        assert browser.faults != []
