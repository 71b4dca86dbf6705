"""The endpoint table of tools, resources, resource templates and prompts, generated for each family."""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from gateway.admin.endpoint import Endpoint, Route
from gateway.admin.limits import WorkKind
from gateway.admin.list_search import PROMPTS, RESOURCES, TEMPLATES, TOOLS
from gateway.admin.requests.lists import PromptListQuery, ToolListQuery, UriListQuery
from gateway.admin.requests.overrides import ToolUpdate
from gateway.admin.requests.primitives import PrimitiveSent, PrimitiveUpdate, UriQuery
from gateway.admin.responses.primitives import (
    PrimitiveValid,
    PromptPage,
    PromptShown,
    ResourcePage,
    ResourceShown,
    TemplatePage,
    TemplateShown,
    ToolPage,
    ToolShown,
)
from gateway.admin.routes.overrides import update_tool
from gateway.admin.routes.primitives import (
    PrimitiveNoun,
    check_item,
    create_item,
    delete_item,
    get_item,
    list_items,
    replace_item,
    update_item,
)
from gateway.domain.primitives import Family
from gateway.web.models import NoBody, NoQuery, QueryModel

Q = TypeVar("Q", bound=QueryModel)

_REFUSALS = frozenset({409, 422, 429})
_NOUNS = (
    PrimitiveNoun(
        family=Family.TOOL,
        singular="tool",
        plural="tools",
        path="/tenants/{t}/tools",
        key="name",
        show=ToolShown.of,
        shown=ToolShown,
        page=ToolPage,
        query=ToolListQuery,
        listing=TOOLS,
    ),
    PrimitiveNoun(
        family=Family.RESOURCE,
        singular="resource",
        plural="resources",
        path="/tenants/{t}/resources",
        key="id",
        show=ResourceShown.of,
        shown=ResourceShown,
        page=ResourcePage,
        query=UriListQuery,
        listing=RESOURCES,
    ),
    PrimitiveNoun(
        family=Family.TEMPLATE,
        singular="resource_template",
        plural="resource_templates",
        path="/tenants/{t}/resource-templates",
        key="id",
        show=TemplateShown.of,
        shown=TemplateShown,
        page=TemplatePage,
        query=UriListQuery,
        listing=TEMPLATES,
    ),
    PrimitiveNoun(
        family=Family.PROMPT,
        singular="prompt",
        plural="prompts",
        path="/tenants/{t}/prompts",
        key="name",
        show=PromptShown.of,
        shown=PromptShown,
        page=PromptPage,
        query=PromptListQuery,
        listing=PROMPTS,
    ),
)


def routes_of(noun: PrimitiveNoun) -> Sequence[Route]:
    """Build all routes of a family."""
    one = f"{noun.path}/{{{noun.key}}}"
    routes: list[Route] = [_list_route(noun), _create_route(noun), _validate_route(noun), _show_route(noun, one)]
    routes += _change_routes(noun, one, "", NoQuery)
    if noun.key == "id":
        routes += _change_routes(noun, noun.path, "_by_uri", UriQuery)
    return routes


def _list_route(noun: PrimitiveNoun) -> Route:
    also = "of every origin, including disabled ones."
    if noun.key == "id":
        also = ", including disabled ones, or the one with a URI."
    return Endpoint(
        method="GET",
        path=noun.path,
        called=f"list_{noun.plural}",
        summary=f"List the tenant's {_title(noun)}s{also}",
        handle=partial(list_items, noun),
        body=NoBody,
        query=noun.query,
        responses={200: noun.page},
    )


def _create_route(noun: PrimitiveNoun) -> Route:
    return Endpoint(
        method="POST",
        path=noun.path,
        called=f"create_{noun.singular}",
        summary=f"Create a {_title(noun)} from a definition and a handler.",
        handle=partial(create_item, noun),
        body=PrimitiveSent,
        query=NoQuery,
        responses={201: noun.shown},
        problems=_REFUSALS,
        work=WorkKind.CHECK,
        has_tag=True,
    )


def _validate_route(noun: PrimitiveNoun) -> Route:
    return Endpoint(
        method="POST",
        path=f"{noun.path}/validate",
        called=f"validate_{noun.singular}",
        summary=f"Validate a {_title(noun)} without storing it; a stored one of the same name is treated as replaced.",
        handle=partial(check_item, noun),
        body=PrimitiveSent,
        query=NoQuery,
        responses={200: PrimitiveValid},
        problems=_REFUSALS,
        work=WorkKind.CHECK,
    )


def _show_route(noun: PrimitiveNoun, path: str) -> Route:
    return Endpoint(
        method="GET",
        path=path,
        called=f"get_{noun.singular}",
        summary=f"Show a {_title(noun)} with its safety level and the reasons for it.",
        handle=partial(get_item, noun),
        body=NoBody,
        query=NoQuery,
        responses={200: noun.shown},
        has_tag=True,
    )


def _change_routes(noun: PrimitiveNoun, path: str, suffix: str, query: type[Q]) -> Sequence[Route]:
    """Build the routes that change one item, addressed by path or query."""
    creates = noun.key == "name" or query is UriQuery  # ids are assigned by the gateway
    also = ", or create it" if creates else ""
    return (
        Endpoint(
            method="PUT",
            path=path,
            called=f"replace_{noun.singular}{suffix}",
            summary=f"Replace the definition and handler of a {_title(noun)}{also}; absent fields have their default.",
            handle=partial(replace_item, noun),
            body=PrimitiveSent,
            query=query,
            responses={200: noun.shown} | ({201: noun.shown} if creates else {}),
            problems=_REFUSALS,
            work=WorkKind.CHECK,
            has_tag=True,
        ),
        _update_route(noun, path, suffix, query),
        Endpoint(
            method="DELETE",
            path=path,
            called=f"delete_{noun.singular}{suffix}",
            summary=f"Delete a {_title(noun)} that the tenant defined.",
            handle=partial(delete_item, noun),
            body=NoBody,
            query=query,
            responses={204: None},
            problems={409},
            has_tag=True,
        ),
    )


def _update_route(noun: PrimitiveNoun, path: str, suffix: str, query: type[Q]) -> Route:
    if noun.family is Family.TOOL:
        return Endpoint(
            method="PATCH",
            path=path,
            called="update_tool",
            summary="Change, enable or disable a tool; absent fields keep their value. Changes of an imported tool "
            "are stored as an override.",
            handle=partial(update_tool, noun),
            body=ToolUpdate,
            query=NoQuery,
            responses={200: noun.shown},
            problems=_REFUSALS,
            work=WorkKind.CHECK,
            has_tag=True,
        )
    return Endpoint(
        method="PATCH",
        path=path,
        called=f"update_{noun.singular}{suffix}",
        summary=f"Change, enable or disable a {_title(noun)}; absent fields keep their value.",
        handle=partial(update_item, noun),
        body=PrimitiveUpdate,
        query=query,
        responses={200: noun.shown},
        problems=_REFUSALS,
        work=WorkKind.CHECK,
        has_tag=True,
    )


def _title(noun: PrimitiveNoun) -> str:
    return noun.singular.replace("_", " ")


ENDPOINTS: Sequence[Route] = tuple(route for noun in _NOUNS for route in routes_of(noun))
