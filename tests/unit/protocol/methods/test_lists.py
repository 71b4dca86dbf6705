"""A list method without a transport that sends rendered bytes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp_types import PaginatedRequestParams

from gateway.protocol.methods.lists import respond_with_list
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext


async def test_a_page_is_never_decoded_for_the_sdk() -> None:
    """Ours: a page of up to 4 MiB is not decoded on the event loop; a transport without a bypass is a defect."""
    registry = cast("Any", SimpleNamespace())
    context = RequestContext(cast("Any", None), registry, "correlation")
    asked = cast("Any", SimpleNamespace(method="tools/list", protocol_version="2025-11-25"))
    CURRENT_REQUEST.set(context)

    with pytest.raises(RuntimeError, match="bypass"):
        await respond_with_list(asked, PaginatedRequestParams())
