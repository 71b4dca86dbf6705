"""Stations of a call, their order, and actions that never happen."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.calls.pipeline import CallPipeline
from gateway.definitions.json_schema.validator import compile_input
from gateway.definitions.policy.primitive_policy import PrimitivePolicy
from gateway.domain.audit import CallRecord
from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import KeyId, OperationId, SourceId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Decision, Judgement, Limits, Safety
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    DecidingRule,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NotFound,
    UpstreamTimeout,
)
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Call, Prepared
from tests.support.slots import Slot

DEFINITION = json.dumps(
    {
        "name": "get_pet",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    }
).encode()
ACME = Principal(
    tenant=TenantId("ten_acme"), slug="acme", key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
)


class Diary:
    """Everything that happened, in order; also the trail, the limiter and the handler of these tests."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.records: list[CallRecord] = []
        self.full = False
        self.mute = False
        self.failure: Exception | None = None
        self.hang: anyio.Event | None = None
        self.inside = 0

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> Slot:
        return Slot(self._place())

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        return self._place()

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        if self.full:
            raise LimitExceeded("too many calls", retry_after_s=1.5)
        self.lines.append("admitted")
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def write(self, record: CallRecord) -> None:
        if self.mute:
            raise AuditUnavailable("no database")
        self.lines.append(f"recorded {record.kind} {record.outcome}")
        self.records.append(record)

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        self.lines.append(f"refused {record.action} {record.outcome} by {rule.kind} {rule.name}".rstrip())

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {name: value for name, value in arguments.items() if value is not None}

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        self.lines.append("prepared")
        if arguments.get("id") == 13:
            raise ArgumentsInvalid("13 cannot be sent")
        request = UpstreamRequest(method="GET", url=f"http://api/{arguments['id']}")
        return Prepared(request=request, digest=b"digest", named="GET")

    async def preview(self, prepared: Prepared) -> str:
        return prepared.summary

    async def run(self, prepared: Prepared, call: Call, /) -> UpstreamResponse:
        self.lines.append("sent")
        if self.hang is not None:
            self.hang.set()
            await anyio.sleep_forever()
        if self.failure is not None:
            raise self.failure
        return UpstreamResponse(status=200, content_type="application/json", body=b'{"id":7}')


@pytest.fixture
def diary() -> Diary:
    """A fresh diary."""
    return Diary()


def _bound(diary: Diary, *, safety: Safety = Safety.SAFE, decision: Decision = Decision.ALLOW) -> BoundTool:
    tool = Tool(
        name="get_pet",
        definition=DEFINITION,
        safety=safety,
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        operation=OperationId("opr_1"),
        source=SourceId("src_1"),
        source_name="pets",
        identity="GET /pets/{id}",
        plan=b"",
    )
    return BoundTool(
        tenant=ACME.tenant,
        tool=tool,
        validator=compile_input(DEFINITION),
        handler=diary,
        policy=PrimitivePolicy(judgement=Judgement(decision=decision, reason="")),
        limits=Limits(),
    )


async def _run(
    diary: Diary, bound: BoundTool, arguments: Mapping[str, object], principal: Principal = ACME
) -> dict[str, Any]:
    raw = await CallPipeline(diary, diary).run(principal, bound, arguments, correlation_id="c-1")
    result: dict[str, Any] = json.loads(b"{" + raw + b"}")
    return result


async def test_a_safe_call_is_recorded_once_before_its_answer(diary: Diary) -> None:
    """Ours: the outcome of a safe call is durable before the answer leaves (SAF-4)."""
    result = await _run(diary, _bound(diary), {"id": 7})

    assert result["structuredContent"] == {"id": 7}
    assert diary.lines == ["admitted", "prepared", "sent", "recorded call ok"]
    assert (diary.records[0].digest, diary.records[0].subject) == (b"digest", "alice")


async def test_the_intent_of_an_unsafe_call_is_recorded_before_it_is_sent(diary: Diary) -> None:
    """Ours: nothing that may do harm is sent without a trace (SAF-4)."""
    await _run(diary, _bound(diary, safety=Safety.MODERATE), {"id": 7})

    assert diary.lines == ["admitted", "prepared", "recorded call.intent intended", "sent", "recorded call ok"]


async def test_without_the_trail_an_unsafe_call_is_not_sent(diary: Diary) -> None:
    """Ours: no audit, no call (SAF-4)."""
    diary.mute = True

    with pytest.raises(AuditUnavailable):
        await _run(diary, _bound(diary, safety=Safety.DANGEROUS), {"id": 7})
    assert "sent" not in diary.lines


async def test_without_the_trail_a_safe_call_has_no_answer(diary: Diary) -> None:
    """Ours: an answer without its record does not leave (SAF-4)."""
    diary.mute = True

    with pytest.raises(AuditUnavailable):
        await _run(diary, _bound(diary), {"id": 7})


async def test_invalid_arguments_reach_no_handler(diary: Diary) -> None:
    """Ours: the handler is not run and nothing is sent (CAL-2)."""
    result = await _run(diary, _bound(diary), {"id": "seven"})

    assert result["isError"] is True
    assert "/id" in result["content"][0]["text"]
    assert diary.lines == ["admitted", "recorded call call.arguments_invalid"]


async def test_absent_values_are_left_out_before_the_schema(diary: Diary) -> None:
    """Ours: null for an optional parameter is no argument (CAL-1)."""
    result = await _run(diary, _bound(diary), {"id": 7, "verbose": None})

    assert result["isError"] is False


async def test_arguments_that_cannot_be_sent_are_refused_at_preparation(diary: Diary) -> None:
    """Ours: a value that the wire cannot carry is an error result, not half a request (CAL-2)."""
    result = await _run(diary, _bound(diary), {"id": 13})

    assert result["isError"] is True
    assert "sent" not in diary.lines


async def test_a_denied_level_is_refused_before_anything_is_prepared(diary: Diary) -> None:
    """Ours: policy comes before the handler (SAF-2)."""
    result = await _run(diary, _bound(diary, safety=Safety.DANGEROUS, decision=Decision.DENY), {"id": 7})

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert diary.lines == ["admitted", "refused call policy.denied by policy"]


async def test_a_refusal_does_not_need_the_trail(diary: Diary) -> None:
    """Ours: audit stops a call that would run; a refused one keeps its answer (OPR-1)."""
    diary.mute = True

    result = await _run(diary, _bound(diary, safety=Safety.DANGEROUS, decision=Decision.DENY), {"id": 7})

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"


@pytest.mark.parametrize("decision", [Decision.CONFIRM, Decision.APPROVE])
async def test_an_unknown_decision_is_a_refusal(diary: Diary, decision: Decision) -> None:
    """Ours: a decision that this version does not know how to get is a no (SAF-2)."""
    await _run(diary, _bound(diary, safety=Safety.MODERATE, decision=decision), {"id": 7})

    assert "sent" not in diary.lines


async def test_a_full_limit_is_raised_with_its_retry_hint_and_recorded(diary: Diary) -> None:
    """Ours: exceeding a limit is a refusal with a hint, before any work (TEN-3)."""
    diary.full = True

    with pytest.raises(LimitExceeded) as caught:
        await _run(diary, _bound(diary), {"id": 7})
    assert caught.value.retry_after_s == 1.5
    assert diary.lines == ["refused call limited by limit"]


async def test_an_upstream_failure_is_an_error_result(diary: Diary) -> None:
    """Ours: the model reads what happened and may try again (CAL-4)."""
    diary.failure = UpstreamTimeout("the upstream did not answer in time")

    result = await _run(diary, _bound(diary), {"id": 7})

    assert result["content"][0]["text"] == "the upstream did not answer in time"
    assert diary.lines[-1] == "recorded call upstream.timeout"


async def test_an_unexpected_exception_shows_only_its_correlation_id(diary: Diary) -> None:
    """Ours: nothing internal reaches the client, the call is still recorded (CAL-4)."""
    diary.failure = RuntimeError("password=hunter2")

    result = await _run(diary, _bound(diary), {"id": 7})

    assert "hunter2" not in json.dumps(result)
    assert result["_meta"]["gateway/error"]["correlation_id"] == "c-1"
    assert diary.lines[-1] == "recorded call crashed"


async def test_a_cancelled_call_is_recorded_and_its_place_freed(diary: Diary) -> None:
    """Ours: a client that leaves does not leave the trail with a gap (SAF-4)."""
    diary.hang = anyio.Event()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(_run, diary, _bound(diary), {"id": 7}, ACME)
            await diary.hang.wait()
            group.cancel_scope.cancel()

    assert diary.lines[-1] == "recorded call cancelled"
    assert diary.inside == 0


@pytest.mark.parametrize(
    ("principal", "error"),
    [
        (replace(ACME, tenant=TenantId("ten_other")), NotFound),
        (replace(ACME, scopes=frozenset({Scope.ADMIN})), Forbidden),
    ],
)
async def test_a_tool_is_only_for_its_tenant_and_the_scope(
    diary: Diary, principal: Principal, error: type[GatewayError]
) -> None:
    """Ours: the last station before the work asks once more whose tool it is (TEN-1)."""
    with pytest.raises(error):
        await _run(diary, _bound(diary), {"id": 7}, principal)
    assert [line.split(" by ")[0] for line in diary.lines] == [f"refused call {error.code}"]
