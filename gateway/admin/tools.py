"""The effective tools of a tenant over REST."""

from functools import partial

from gateway.admin.answers import ToolPage, ToolShown
from gateway.admin.endpoints import Admin, Answer, Call, Endpoint, Plain
from gateway.admin.pages import read_page
from gateway.admin.schemas import NoBody, NoQuery, PageQuery
from gateway.catalog import tools
from gateway.catalog.versions import tag_of
from gateway.domain.tools import Tool


async def list_tools(admin: Admin, call: Call[NoBody, PageQuery]) -> Answer:
    """The tenant's tools by name."""
    read = partial(tools.page_tools, call.tenant, admin.catalog)
    shown, cursor = await read_page(admin.cursors, call.tenant, "tools", call.query, read=read, key=_name)
    return Answer(content=ToolPage(items=[ToolShown.of(tool) for tool in shown], next_cursor=cursor))


async def get_tool(admin: Admin, call: Plain) -> Answer:
    """One tool."""
    tool = await tools.get_tool(call.tenant, admin.catalog, call.path["name"])
    return Answer(content=ToolShown.of(tool), tag=tag_of(tool))


def _name(tool: Tool) -> str:
    return tool.name


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/tenants/{t}/tools",
        summary="List the tools that the tenant's clients have.",
        handle=list_tools,
        body=NoBody,
        query=PageQuery,
        answers={200: ToolPage},
    ),
    Endpoint(
        method="GET",
        path="/tenants/{t}/tools/{name}",
        summary="Show a tool with its safety level and the reasons for it.",
        handle=get_tool,
        body=NoBody,
        query=NoQuery,
        answers={200: ToolShown},
        has_tag=True,
    ),
)
