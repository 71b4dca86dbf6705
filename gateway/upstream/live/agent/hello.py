"""Parser of `provider/hello`, the first message of an agent: the source, and the attachment to resume."""

import re
from dataclasses import dataclass
from typing import Final, cast

from gateway.errors import BadInput
from gateway.upstream.live.agent.jsonrpc import AgentRequest, MessageId
from gateway.upstream.live.agent.limits import MAX_TITLE_LENGTH

VERSION: Final = 1
"""Version of the protocol."""
_NAME: Final = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHello:
    """The members of a hello. `calls` are the unvalidated ids of calls that the agent is still running."""

    message_id: MessageId | None
    source: str
    title: str
    resume: str
    calls: tuple[object, ...]
    completes: bool
    """True if the agent supports argument completion."""
    reports_updates: bool
    """True if the agent reports updates of its resources."""


def parse_hello(message: AgentRequest) -> AgentHello:
    """Parse a hello.

    Raises:
        BadInput: the version is unknown, or the name of the source is invalid.
    """
    params = message.params
    source, title, resume, calls = (params.get(name) for name in ("source", "title", "resume", "calls"))
    if params.get("version") != VERSION:
        raise BadInput(f"version must be {VERSION}")
    if not isinstance(source, str) or _NAME.fullmatch(source) is None:
        raise BadInput(f"source must match {_NAME.pattern}")
    return AgentHello(
        message_id=message.id,
        source=source,
        title=title[:MAX_TITLE_LENGTH] if isinstance(title, str) else "",
        resume=resume if isinstance(resume, str) else "",
        calls=tuple(cast("list[object]", calls)) if isinstance(calls, list) else (),
        completes=params.get("completions") is True,
        reports_updates=params.get("subscriptions") is True,
    )
