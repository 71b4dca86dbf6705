"""A browser for tests: Debian's headless Chromium, driven over its DevTools protocol.

Keys are pressed as a keyboard presses them. What a page must not do is noted: violations of its Content Security
Policy, dialogs, requests to other hosts, and exceptions.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.deploy.programs import find_program, library_path

_PATIENCE_S = 30
_KEYS: Mapping[str, tuple[int, str]] = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
_FOCUS = "(e => e ? [e.tagName, e.id || e.name || '', e.value || '', e.textContent.trim()].join('|') : '')"


@dataclass(slots=True)
class Browser:
    """One page of a running browser."""

    socket: ClientConnection
    session: str = ""
    faults: list[str] = field(default_factory=list[str])
    """Forbidden actions of a page."""
    _number: int = 0
    _answers: dict[int, asyncio.Future[dict[str, Any]]] = field(
        default_factory=dict[int, "asyncio.Future[dict[str, Any]]"]
    )
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, method: str, **params: object) -> dict[str, Any]:
        """One command and its result."""
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        message = {"id": number, "method": method, "params": params}
        await self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        async with asyncio.timeout(_PATIENCE_S):
            found: dict[str, Any] = await answer
        return found

    async def read(self) -> None:
        """Take what the browser sends, until its connection ends."""
        async for raw in self.socket:
            message = json.loads(raw)
            if "id" in message:
                answer = self._answers.pop(message["id"])
                if "error" in message:
                    answer.set_exception(AssertionError(str(message["error"])))
                else:
                    answer.set_result(message["result"])
            else:
                self._note(message["method"], message["params"])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Audits.issueAdded" if "contentSecurityPolicyIssueDetails" in params["issue"]["details"]:
                self.faults.append(f"policy: {params['issue']['details']}")
            case "Log.entryAdded" if params["entry"]["source"] in {"security", "violation"}:
                self.faults.append(f"log: {params['entry']['text']}")
            case "Page.javascriptDialogOpening" | "Runtime.exceptionThrown" | "Page.windowOpen":
                self.faults.append(f"{method}: {params}")
            case _:
                pass

    async def open(self, url: str) -> None:
        """Go to a URL, and wait until it is loaded."""
        self._loaded.clear()
        await self.send("Page.navigate", url=url)
        await self.loaded()

    async def loaded(self) -> None:
        """Wait for the end of a navigation that has begun."""
        async with asyncio.timeout(_PATIENCE_S):
            await self._loaded.wait()

    async def press(self, key: str, *, loads: bool = False) -> None:
        """Press one key; `loads`: and wait for the page that follows."""
        self._loaded.clear()
        code, text = _KEYS[key]
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)
        if loads:
            await self.loaded()

    async def type(self, text: str) -> None:
        """Type a text where the focus is."""
        await self.send("Input.insertText", text=text)

    async def ask(self, expression: str) -> Any:
        """The value of an expression in the page, which the page's policy does not hinder."""
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def text(self) -> str:
        """Text of the page."""
        return str(await self.ask("document.body.innerText"))

    async def focus(self) -> str:
        """The focused element: tag, id or name, value, and text."""
        return str(await self.ask(f"{_FOCUS}(document.activeElement)"))

    async def focused(self, wanted: str) -> None:
        """Wait until the focus is on what begins with this text: a page sets it after its load event."""
        async with asyncio.timeout(_PATIENCE_S):
            while not (await self.focus()).startswith(wanted):  # noqa: ASYNC110  # it is in the browser
                await asyncio.sleep(0.02)

    async def tab_to(self, wanted: str, *, limit: int = 40) -> list[str]:
        """Press Tab until the focus is on what contains this text; return what had the focus on the way."""
        passed: list[str] = []
        for _ in range(limit):
            await self.press("Tab")
            passed.append(await self.focus())
            if wanted in passed[-1]:
                return passed
        raise AssertionError(f"no {wanted!r} within {limit} tabs: {passed}")

    async def names(self) -> list[tuple[str, str]]:
        """Role and name of each element, as a screen reader has them."""
        nodes = (await self.send("Accessibility.getFullAXTree"))["nodes"]
        seen = [node for node in nodes if not node.get("ignored")]
        return [(str(node["role"]["value"]), str(node.get("name", {}).get("value", ""))) for node in seen]


@asynccontextmanager
async def running_chromium(folder: Path) -> AsyncGenerator[str]:
    """The DevTools address of a browser, which is killed when the block ends."""
    program, variables = _program()
    command = [str(program), "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
    command += ["--remote-debugging-port=0", "--no-first-run", "--disable-background-networking", "about:blank"]
    null = subprocess.DEVNULL
    started = await asyncio.create_subprocess_exec(*command, env=variables, stdin=null, stdout=null, stderr=null)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            address = await _address(folder / "DevToolsActivePort", started)
        yield address  # outside of the block, whose time would cancel the test that runs when it is over
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


@pytest.fixture(scope="package")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """The browser that the tests of a package share: a start takes 0.4 s of CPU."""
    async with running_chromium(tmp_path_factory.mktemp("profile")) as address:
        yield address


@asynccontextmanager
async def open_page(chromium: str) -> AsyncGenerator[Browser]:
    """A page of that browser without any state of other pages."""
    # A busy browser answers no ping; commands have their own time limit.
    async with connect(chromium, max_size=64 * 1024 * 1024, proxy=None, ping_interval=None) as socket:
        browser = Browser(socket)
        reading = asyncio.create_task(browser.read())
        await _attach(browser)
        yield browser
        reading.cancel()


@pytest.fixture
async def browser(chromium: str) -> AsyncGenerator[Browser]:
    """A page that has done nothing that it must not do."""
    async with open_page(chromium) as page:
        yield page
        assert page.faults == []


def _program() -> tuple[Path, dict[str, str]]:
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    found = find_program("chromium-headless-shell", "chromium-headless-shell", with_libraries=True)
    libraries = library_path(found)
    if not libraries:
        return found, variables
    # the file in `usr/bin` is a script that names the program by an absolute path
    return found.parents[1] / "lib/chromium/chromium-headless-shell", variables | libraries


async def _address(written: Path, started: asyncio.subprocess.Process) -> str:
    """The DevTools address, which the browser writes into a file; it gives no other sign of being ready."""
    while not (written.exists() and written.read_text().count("\n")):
        assert started.returncode is None, "the browser ended"
        await asyncio.sleep(0.02)
    port, path = written.read_text().split("\n")[:2]
    return f"ws://127.0.0.1:{port}{path}"


async def _attach(browser: Browser) -> None:
    own = await browser.send("Target.createBrowserContext", disposeOnDetach=True)
    target = await browser.send("Target.createTarget", url="about:blank", **own)
    attached = await browser.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    browser.session = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Audits", "Accessibility"):
        await browser.send(f"{domain}.enable")
