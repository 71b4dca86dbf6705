"""Clients for tests, as handlers see them: one that answers at once, and one that answers in a later round."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import CapabilityMissing, ClientSilent
from gateway.handlers.interfaces import InputRequest, InputRequired, LogLevel


@dataclass(slots=True)
class TalkingPeer:
    """A client of the handshake era: it records notifications and answers questions, by key or by kind."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    cannot: frozenset[str] = frozenset()
    notified: list[object] = field(default_factory=list[object])
    approval_timeout_s: float = 0.0
    session: str = ""
    asked: dict[str, InputRequest] = field(default_factory=dict[str, InputRequest])

    def can(self, kind: str) -> bool:
        return kind not in self.cannot

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.notified.append(("progress", progress, total, message))

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        self.notified.append(("log", level, data, logger))

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        for question in input_requests.values():
            if not self.can(question.kind):
                raise CapabilityMissing(f"the client did not declare {question.kind}", capability=question.kind)
        self.asked.update(input_requests)
        answers = {key: self.answers.get(key) or self.answers.get(each.kind) for key, each in input_requests.items()}
        if None in answers.values():
            raise ClientSilent("the client did not answer in time")
        return {key: answer for key, answer in answers.items() if answer is not None}

    def recall(self, key: str) -> Any:
        return None

    def remember(self, key: str, value: object) -> None:
        """There is no later round."""

    async def note_intent(self) -> None:
        """Nothing is asked of it."""

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Progress is enough."""

    async def end_stream(self) -> None:
        self.notified.append("stream ended")


@dataclass(slots=True)
class RoundsPeer:
    """A client of 2026-07-28 in one of its rounds: whatever has no answer yet ends the round."""

    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    memory: dict[str, Any] = field(default_factory=dict[str, Any])
    notified: list[object] = field(default_factory=list[object])
    rounds: int = 1
    approval_timeout_s: float = 0.0
    session: str = ""

    def can(self, kind: str) -> bool:
        return True

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.notified.append(("progress", progress))

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        self.notified.append(("log", data))

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        missing = {key: question for key, question in input_requests.items() if key not in self.answers}
        if missing:
            raise InputRequired(missing, dict(self.memory))
        return {key: self.answers[key] for key in input_requests}

    def recall(self, key: str) -> Any:
        return self.memory.get(key)

    def remember(self, key: str, value: object) -> None:
        self.memory[key] = value

    async def note_intent(self) -> None:
        """Nothing is asked of it."""

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Progress is enough."""

    async def end_stream(self) -> None:
        """A stream of this era cannot be come back to."""

    def answered(self, **answers: Mapping[str, Any]) -> "RoundsPeer":
        """The client in its next round, which brings these answers."""
        return RoundsPeer({**self.answers, **answers}, dict(self.memory), self.notified, self.rounds + 1)


def accepted(**content: object) -> Mapping[str, Any]:
    """A form that the user filled in."""
    return {"action": "accept", "content": content}
