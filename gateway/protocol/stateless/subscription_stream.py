"""The stream of `subscriptions/listen` (2026-07-28): an acknowledgement, then notifications, then a final result.

A request that passes the SDK's validation is served here, on one sleeping task. A request that fails it goes to the
SDK, which rejects it. `serve` is the SDK's request handler, for other transports than HTTP; it sends the same messages.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from mcp.server.context import HandlerResult
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY as SUBSCRIPTION
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header
from mcp.shared.subscriptions import event_to_notification
from mcp_types import (
    INVALID_REQUEST,
    SERVER_INFO_META_KEY,
    JSONRPCRequest,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types import methods as surface
from pydantic import ValidationError

from gateway.catalog.calls.mcp_tasks import TaskRecords
from gateway.domain.calls.mcp_tasks import McpTask
from gateway.domain.json_access import as_list, as_object
from gateway.domain.primitives import Family
from gateway.domain.refusals import ResultBusy
from gateway.errors import BadInput, CapabilityMissing, GatewayError, NotFound, Unavailable
from gateway.protocol.errors import TASKS, to_mcp, to_mcp_in
from gateway.protocol.http import jsonrpc, sse_encoding
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import id_of, invalid_request
from gateway.protocol.http.results import JsonRpcReply, error_result
from gateway.protocol.http.sse_streams import EventStream
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext, SdkContext
from gateway.protocol.server_name import NAME
from gateway.protocol.stateless.limits import MAX_URIS, MAX_WATCHED_TASKS
from gateway.protocol.stateless.subscriptions import Change, ChangedTask, Subscription, SubscriptionHub
from gateway.protocol.tasks.task_objects import declares_tasks, detailed_task
from gateway.protocol.tasks.visible_tasks import find_task, owner_of
from gateway.telemetry.distribution import VERSION

METHOD: Final = "subscriptions/listen"
_TASK_NOTIFICATION: Final = "notifications/tasks"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_EVENTS: Final[Mapping[Family, Callable[[], ServerEvent]]] = {
    Family.TOOL: ToolsListChanged,
    Family.RESOURCE: ResourcesListChanged,
    Family.PROMPT: PromptsListChanged,
}
_LISTS: Final = frozenset({"toolsListChanged", "resourcesListChanged", "promptsListChanged"})
_MODERN: Final = "2026-07-28"
_encode = msgspec.json.encode


class SubscriptionStreams:
    """Serves `subscriptions/listen`."""

    def __init__(self, subscriptions: SubscriptionHub, tasks: TaskRecords) -> None:
        self._subscriptions = subscriptions
        self._tasks = tasks

    def reply(
        self, request: McpRequest, message: Mapping[str, Any], context: RequestContext
    ) -> "JsonRpcReply | SubscriptionReply | None":
        """The response to a request, whose stream is not open yet; None if the SDK has to reject the request."""
        if not request.accepts(sse_encoding.MEDIA_TYPE):
            text, correlation_id = "Accept must include text/event-stream", context.correlation_id
            return JsonRpcReply(406, invalid_request(text, correlation_id, request_id=id_of(message)))
        try:
            parsed = _parse_request(request, message)
        except GatewayError as error:
            refused = to_mcp_in(_MODERN, error, context.correlation_id).error
            return error_result(message["id"], refused, is_modern=True)
        return None if parsed is None else SubscriptionReply(self._subscriptions, self._tasks, context, *parsed)

    async def serve(self, ctx: SdkContext, params: SubscriptionsListenRequestParams) -> HandlerResult:
        """Serve a subscription as a request handler of the SDK.

        Raises:
            MCPError: the request has no id.
            LimitExceeded: too many streams are open.
            Unavailable: this replica is shutting down.
        """
        if ctx.request_id is None:
            raise MCPError(INVALID_REQUEST, "subscriptions/listen needs a request id")
        _tasks_of(params.notifications, has_tasks=declares_tasks(ctx))
        meta: dict[str, Any] = {SUBSCRIPTION: ctx.request_id}
        subscription = await self._subscriptions.open(CURRENT_REQUEST.get().registry, params.notifications)
        try:
            acknowledged_params = SubscriptionsAcknowledgedNotificationParams(
                notifications=subscription.served, _meta=meta
            )
            acknowledged = SubscriptionsAcknowledgedNotification(params=acknowledged_params)
            await ctx.session.send_notification(acknowledged, related_request_id=ctx.request_id)
            woken = asyncio.Event()
            subscription.wake = woken.set
            async for changes in _batches(subscription, partial(_next_wake, woken)):
                for change in changes:
                    if isinstance(change, ChangedTask):  # tasks are followed over HTTP only
                        continue
                    event = ResourceUpdated(uri=change) if not isinstance(change, Family) else _EVENTS[change]()
                    note = event_to_notification(event, meta)
                    await ctx.session.send_notification(note, related_request_id=ctx.request_id)
            return SubscriptionsListenResult(_meta=meta)
        finally:
            await self._subscriptions.close(subscription)


class SubscriptionReply(msgspec.Struct, frozen=True):
    """The response to a valid `subscriptions/listen`: a stream, or an error if it cannot be opened."""

    subscriptions: SubscriptionHub
    tasks: TaskRecords
    context: RequestContext
    request_id: str | int
    wanted: SubscriptionFilter
    wanted_tasks: Sequence[str]

    async def send(self, request: McpRequest) -> None:
        """Open the subscription and send its changes; returns at its end."""
        principal, correlation_id = self.context.principal, self.context.correlation_id
        registry = self.context.registry
        try:
            followed = await self.tasks.owned(owner_of(registry), self.wanted_tasks) if self.wanted_tasks else ()
            subscription = await self.subscriptions.open(registry, self.wanted, followed)
        except GatewayError as error:
            await error_result(self.request_id, to_mcp(error, correlation_id).error, is_modern=True).send(request)
            return
        try:
            stream = EventStream(request.send, principal, receive=request.receive)
            await _send_changes(subscription, stream, self.request_id, self.tasks)
        finally:
            await self.subscriptions.close(subscription)


async def _send_changes(subscription: Subscription, to: EventStream, request_id: str | int, tasks: TaskRecords) -> None:
    async def find(task: str) -> McpTask:
        return await find_task(tasks, subscription.registry, task)

    meta = {SUBSCRIPTION: request_id}
    subscription.wake = to.wake
    await to.begin(())
    await to.write(sse_encoding.event(_acknowledgement(subscription, meta)))
    async for changes in _batches(subscription, to.wait):
        if to.is_over:
            break
        notes = [await _notification(change, meta, find) for change in changes]
        await to.write(b"".join(sse_encoding.event(note) for note in notes if note is not None))
    else:
        await to.write(sse_encoding.event(_result(request_id, meta)))
    await to.finish()


async def _batches(
    subscription: Subscription, wait: Callable[[], Awaitable[object]]
) -> AsyncGenerator[Sequence[Change]]:
    """Yield the changes since the last batch, after each return of `wait`; the last batch at the subscription's end."""
    while True:
        is_over = subscription.is_over  # read before the last changes are taken
        yield tuple(subscription.drain())
        if is_over:
            return
        await wait()


async def _next_wake(woken: asyncio.Event) -> None:
    await woken.wait()
    woken.clear()


def _acknowledgement(subscription: Subscription, meta: Mapping[str, Any]) -> bytes:
    served = subscription.served.model_dump(by_alias=True, mode="json", exclude_none=True)
    if subscription.tasks:
        served["taskIds"] = list(subscription.tasks)
    return jsonrpc.notification(_ACKNOWLEDGED, {"notifications": served, "_meta": meta})


async def _notification(
    change: Change, meta: Mapping[str, Any], find: Callable[[str], Awaitable[McpTask]]
) -> bytes | None:
    """The notification of a change; None for a task that cannot be read now, which the client polls."""
    if isinstance(change, Family):
        return jsonrpc.list_changed(change, meta)
    if isinstance(change, ChangedTask):
        try:
            shown = await detailed_task(await find(change.id))
            return jsonrpc.notification(_TASK_NOTIFICATION, {**shown, "_meta": meta})
        except (NotFound, Unavailable, ResultBusy):
            return None
    return jsonrpc.resource_updated(change, meta)


def _result(request_id: str | int, meta: Mapping[str, Any]) -> bytes:
    server = {SERVER_INFO_META_KEY: {"name": NAME, "version": VERSION}}
    result = {"resultType": "complete", "_meta": {**meta, **server}}
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def _parse_request(
    request: McpRequest, message: Mapping[str, Any]
) -> tuple[str | int, SubscriptionFilter, Sequence[str]] | None:
    """The request's id, filter and tasks; None if the SDK would reject the request.

    Raises:
        BadInput: the filter is invalid, although the SDK accepts it.
    """
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    if find_duplicated_routing_header(headers) is not None:
        return None
    verdict = classify_inbound_request(message, headers=dict(headers))
    if not isinstance(verdict, InboundModernRoute):
        return None
    try:
        call = JSONRPCRequest.model_validate(message, by_name=False)
        surface.validate_client_request(METHOD, verdict.protocol_version, call.params)
        params = SubscriptionsListenRequestParams.model_validate(call.params, by_name=False)
    except ValidationError:
        return None
    _check_filter(message["params"]["notifications"])
    declared = as_object((as_object(verdict.client_capabilities) or {}).get("extensions")) or {}
    return call.id, params.notifications, _tasks_of(params.notifications, has_tasks=TASKS in declared)


def _check_filter(wanted: Mapping[str, Any]) -> None:
    """Refuse a filter that the SDK accepts: it reads texts as booleans, and has no limit of resources.

    Raises:
        BadInput: a member is no boolean, or the filter has too many resources.
    """
    for name, value in wanted.items():
        if name in _LISTS and not isinstance(value, bool | None):
            raise BadInput(f"notifications.{name} must be a boolean")
    uris = len(as_list(wanted.get("resourceSubscriptions")) or ())
    if uris > MAX_URIS:
        raise BadInput(
            f"notifications.resourceSubscriptions has {uris} resources (limit {MAX_URIS}); open a further stream"
        )


def _tasks_of(filters: SubscriptionFilter, *, has_tasks: bool) -> Sequence[str]:
    """Return the first `MAX_WATCHED_TASKS` requested tasks; `has_tasks` is True if the request declares the extension.

    Raises:
        CapabilityMissing: tasks are requested without the extension (SEP-2663).
        BadInput: `taskIds` is not an array of strings.
    """
    extra = filters.model_extra or {}
    if "taskIds" not in extra:
        return ()
    if not has_tasks:  # guard: listened-tasks-declared
        raise CapabilityMissing(f"the client did not declare the extension {TASKS}", capability="tasks")
    wanted = as_list(extra["taskIds"])
    tasks = [task for task in wanted or () if isinstance(task, str)]
    if wanted is None or len(tasks) < len(wanted):
        raise BadInput("notifications/taskIds must be an array of strings")
    return tasks[:MAX_WATCHED_TASKS]
