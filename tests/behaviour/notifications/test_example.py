"""The receiver of docs/webhook-endpoints.md, unchanged."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.notifications.conftest import Outbox

PAGE = Path(__file__).parents[3] / "docs" / "webhook-endpoints.md"


@pytest.fixture
def verify() -> Callable[..., bool]:
    """The function of the page."""
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    found: Callable[..., bool] = names["verify"]
    return found


async def test_the_receiver_of_the_page_accepts_real_deliveries(outbox: Outbox, verify: Callable[..., bool]) -> None:
    """Ours: and nothing else: another secret, body, id or time is refused (SAF-3)."""
    made = await outbox.endpoint()
    rotated = (await outbox.gateway.admin.post(f"{outbox.path}/chat/rotate")).json()
    await outbox.raise_event()
    await outbox.settled("delivered")
    [seen] = outbox.receiver.seen
    headers = {name.lower(): text for name, text in seen.headers}

    assert verify(made["secret"], headers, seen.body)
    assert verify(rotated["secret"], headers, seen.body)
    assert not verify("whsec_" + "A" * 44, headers, seen.body)
    assert not verify(made["secret"], headers, seen.body + b" ")
    for name, text in (("webhook-id", "msg_x"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,é v2,x")):
        assert not verify(made["secret"], {**headers, name: text}, seen.body)
