"""Parameters: where they go, how they are written, what their arguments are called."""

from typing import Any

import pytest

from gateway.domain.http.plans import Location, ParameterPlan, Style
from gateway.domain.updates.import_reports import Status
from tests.support.openapi import compile_it, definition_of, document, fate, input_of, only, operation, with_parameter

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}


def notes(raw: dict[str, Any]) -> str:
    return "\n".join(compile_it(raw).report.notes)


def plan_of(parameter: dict[str, Any], **more: Any) -> ParameterPlan:
    (plan,) = only(with_parameter({"name": "p", "schema": LIST, **parameter}, **more)).plan.parameters
    return plan


@pytest.mark.parametrize(
    ("parameter", "style", "explode"),
    [
        ({"in": "query"}, Style.FORM, True),
        ({"in": "cookie"}, Style.FORM, True),
        ({"in": "header"}, Style.SIMPLE, False),
        ({"in": "query", "style": "spaceDelimited"}, Style.SPACE, False),
        ({"in": "query", "style": "pipeDelimited", "explode": False}, Style.PIPE, False),
        ({"in": "query", "style": "deepObject", "explode": True}, Style.DEEP_OBJECT, True),
        ({"in": "query", "explode": False}, Style.FORM, False),
        ({"in": "query", "explode": "yes"}, Style.FORM, True),
    ],
)
def test_style_and_explode_have_the_defaults_of_their_place(
    parameter: dict[str, Any], style: Style, explode: bool
) -> None:
    """OpenAPI: style by location, explode by style."""
    plan = plan_of(parameter)

    assert (plan.style, plan.explode, plan.required) == (style, explode, False)


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
def test_path_parameters_are_always_required(style: str) -> None:
    """OpenAPI: a path parameter is required, whatever the document declares."""
    plan = plan_of({"in": "path", "style": style, "required": False}, path="/x/{p}")

    assert (plan.style.value, plan.explode, plan.required) == (style, False, True)


def test_reserved_characters_stay_only_where_permitted() -> None:
    """OpenAPI: `allowReserved` is false unless it is true."""
    assert plan_of({"in": "query", "allowReserved": True}).allow_reserved
    assert not plan_of({"in": "query"}).allow_reserved


def test_a_style_of_another_place_is_harmless_for_one_value_only() -> None:
    """Ours: no request is half right; a list in an impossible style is not offered."""
    single = with_parameter({"name": "p", "in": "header", "style": "form", "schema": TEXT})
    several = with_parameter({"name": "p", "in": "header", "style": "form", "schema": LIST})
    needed = with_parameter({"name": "p", "in": "header", "style": "form", "schema": LIST, "required": True})

    assert fate(single).status is Status.OK
    assert "not defined for its location; simple is used" in notes(single)
    assert input_of(single)["properties"] == {"p": TEXT}
    assert fate(several).status is Status.DEGRADED
    assert input_of(several)["properties"] == {}
    assert fate(needed).status is Status.SKIPPED


def test_operations_override_their_path_item_by_name_and_place() -> None:
    """OpenAPI: parameters of the path item are inherited, equal ones replaced."""
    raw = document(
        {
            "/x/{id}": {
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": TEXT},
                    {"name": "q", "in": "query", "schema": TEXT},
                ],
                "get": {
                    "parameters": [{"name": "q", "in": "query", "required": True, "schema": {"type": "integer"}}],
                },
            }
        }
    )

    assert input_of(raw) == {
        "type": "object",
        "properties": {"id": TEXT, "q": {"type": "integer"}},
        "required": ["id", "q"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("name", ["Accept", "content-type", "AUTHORIZATION"])
def test_headers_that_openapi_ignores_are_no_arguments(name: str) -> None:
    """OpenAPI: Accept, Content-Type and Authorization parameters are ignored."""
    raw = with_parameter({"name": name, "in": "header", "required": True, "schema": TEXT})

    assert fate(raw).status is Status.OK
    assert input_of(raw)["properties"] == {}
    assert f"the header '{name}' is " in notes(raw)


def test_headers_of_the_connection_are_left_to_it() -> None:
    """Ours: framing headers never come from outside."""
    raw = with_parameter({"name": "Content-Length", "in": "header", "required": True, "schema": TEXT})

    assert fate(raw).status is Status.OK
    assert "GET /x: the header 'Content-Length' is set by the connection" in notes(raw)
    assert input_of(raw)["properties"] == {}


def test_renamed_arguments_carry_their_original_names() -> None:
    """Ours: a model and an administrator can match arguments to parameters, also in a short list (OAS-3)."""
    names = ["sentAt>", "sentAt<", "会社", "部門"]
    raw = operation({"parameters": [{"name": name, "in": "query", "schema": TEXT} for name in names]})
    listed = input_of(raw)["properties"]
    long = [
        {"name": f"{name}{n}", "in": "query", "schema": TEXT, "description": "w " * 900}
        for name in names
        for n in range(9)
    ]
    (made,) = compile_it(operation({"parameters": long})).operations

    assert [part["description"] for part in listed.values()] == [f"`{name}`" for name in names]
    assert [plan.name for plan in only(raw).plan.parameters] == names
    assert f"the argument {list(listed)[2]} is the parameter '会社'" in notes(raw)
    assert made.input_schema is not None
    shown = definition_of(made)["inputSchema"]["properties"].values()
    assert [part["description"].split("`")[1] for part in shown] == [one["name"] for one in long]
    assert input_of(operation({"parameters": [{"name": "a", "in": "query", "schema": TEXT}]}))["properties"] == {
        "a": TEXT
    }


def test_segments_with_a_colon_are_placeholders_where_a_parameter_is_declared() -> None:
    """Ours: `/w/:id` of a router is sent with its value, and a name without a parameter is a loss (OAS-3)."""
    declared = {"name": "id", "in": "path", "required": True, "schema": TEXT}
    sent = operation({"parameters": [declared]}, path="/w/:id/x:verb")
    literal = operation({}, path="/w/:id")

    assert (only(sent).plan.path, fate(sent).status) == ("/w/{0}/x:verb", Status.OK)
    assert input_of(sent)["required"] == ["id"]
    assert (only(literal).plan.path, fate(literal).status) == ("/w/:id", Status.DEGRADED)
    assert "the segment ':id', and no path parameter of this name" in fate(literal).reasons[0]


def test_markup_is_offered_as_text() -> None:
    """Ours: a parameter whose value is an XML document is written by the caller, and the report states it."""
    content = {"application/xml": {"schema": {"type": "object"}}}
    raw = with_parameter({"name": "p", "in": "query", "required": True, "content": content})

    assert fate(raw).status is Status.DEGRADED
    assert input_of(raw)["properties"] == {"p": {"type": "string"}}


@pytest.mark.parametrize(("required", "status"), [(True, Status.SKIPPED), (False, Status.DEGRADED)])
@pytest.mark.parametrize("name", ["Cookie", "X-Forwarded-For", "bad name", "a\r\nb"])
def test_headers_that_cannot_be_sent_are_not_offered(name: str, required: bool, status: Status) -> None:
    """Ours: an optional one is left out, a required one skips the operation."""
    raw = with_parameter({"name": name, "in": "header", "required": required, "schema": TEXT})

    assert fate(raw).status is status


def test_arguments_have_names_that_clients_take() -> None:
    """Ours: foreign characters become underscores, 64 at most, undone by the plan."""
    raw = operation(
        {
            "parameters": [
                {"name": "filter[a b]", "in": "query", "schema": TEXT},
                {"name": "StartTime<", "in": "query", "schema": TEXT},
                {"name": "n" * 80, "in": "query", "schema": TEXT},
            ]
        }
    )

    assert [(item.argument, item.name) for item in only(raw).plan.parameters] == [
        ("filter_a_b_", "filter[a b]"),
        ("StartTime_", "StartTime<"),
        ("n" * 64, "n" * 80),
    ]


def test_equal_names_are_distinguished_by_their_place() -> None:
    """Ours: `{location}_{name}` for a name in two places or called `body`; a further clash is numbered."""
    raw = operation(
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": TEXT},
                {"name": "id", "in": "query", "schema": TEXT},
                {"name": "query_id", "in": "query", "schema": TEXT},
                {"name": "body", "in": "query", "schema": TEXT},
                {"name": "a[", "in": "query", "schema": TEXT},
                {"name": "a]", "in": "query", "schema": TEXT},
            ]
        },
        path="/x/{id}",
    )

    assert [item.argument for item in only(raw).plan.parameters] == [
        "path_id",
        "query_id",
        "query_id_2",
        "query_body",
        "a_",
        "a__2",
    ]


def test_a_parameter_keeps_its_description_and_deprecation() -> None:
    """Ours: the parameter takes precedence over its schema."""
    schema = {"type": "string", "description": "of the schema"}
    raw = with_parameter({"name": "p", "in": "query", "description": "own", "deprecated": True, "schema": schema})

    assert input_of(raw)["properties"]["p"] == {"type": "string", "description": "own", "deprecated": True}


def test_a_parameter_without_a_schema_takes_anything() -> None:
    """Ours: an undeclared constraint is not checked."""
    assert input_of(with_parameter({"name": "p", "in": "query"}))["properties"] == {"p": {}}


def test_json_content_is_planned_as_such() -> None:
    """OpenAPI: a `content` parameter is serialised in its media type first."""
    raw = with_parameter({"name": "p", "in": "query", "content": {"application/json": {"schema": LIST}}})
    (plan,) = only(raw).plan.parameters

    assert plan.media_type == "application/json"
    assert input_of(raw)["properties"]["p"] == LIST


@pytest.mark.parametrize("content", [{}, {"application/cbor": {}}, {"a/b": {}, "c/d": {}}, {"bad\n": {}}])
def test_other_content_is_not_offered(content: dict[str, Any]) -> None:
    """Ours: a parameter in another media type is left out with its reason."""
    raw = with_parameter({"name": "p", "in": "query", "content": content})

    assert fate(raw).status is Status.DEGRADED
    assert input_of(raw)["properties"] == {}


def test_the_whole_query_can_be_one_argument() -> None:
    """OpenAPI 3.2: `in: querystring`."""
    content: dict[str, Any] = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    raw = with_parameter({"name": "qs", "in": "querystring", "content": content}, version="3.2.0")
    (plan,) = only(raw).plan.parameters

    assert plan.location is Location.QUERYSTRING
    assert plan.media_type == "application/x-www-form-urlencoded"


def test_the_whole_query_excludes_parts_of_it() -> None:
    """OpenAPI 3.2: `querystring` and `query` do not go together."""
    content: dict[str, Any] = {"application/x-www-form-urlencoded": {}}
    raw = operation(
        {"parameters": [{"name": "a", "in": "querystring", "content": content}, {"name": "b", "in": "query"}]}
    )

    assert fate(raw).status is Status.SKIPPED


@pytest.mark.parametrize(
    "parameter",
    [
        {"in": "query", "schema": TEXT},
        {"name": "p", "schema": TEXT},
        {"name": "p", "in": "body", "schema": TEXT},
        {"name": "", "in": "query"},
        {"name": 5, "in": ["query"]},
    ],
)
@pytest.mark.parametrize(("required", "status"), [(True, Status.SKIPPED), (False, Status.DEGRADED)])
def test_a_malformed_parameter_costs_no_more_than_its_operation(
    parameter: dict[str, Any], required: bool, status: Status
) -> None:
    """Ours: required ones skip the operation, optional ones are left out."""
    assert fate(with_parameter({**parameter, "required": required})).status is status


@pytest.mark.parametrize("parameter", [None, 1, "text", [], {"$ref": "#/nowhere"}, {"$ref": "https://example.com/p"}])
def test_a_parameter_that_cannot_be_read_skips_the_operation(parameter: Any) -> None:
    """Ours: it is unknown whether it was required."""
    assert fate(operation({"parameters": [parameter]})).status is Status.SKIPPED


def test_an_undeclared_placeholder_becomes_a_text_argument() -> None:
    """Ours: an unfilled placeholder is never sent."""
    raw = operation({}, path="/x/{id}")

    assert fate(raw).status is Status.OK
    assert "GET /x/{id}: the path parameter 'id' is not declared; its argument is a string" in notes(raw)
    assert input_of(raw)["required"] == ["id"]
    assert only(raw).plan.path == "/x/{0}"


def test_a_path_parameter_without_a_placeholder_is_not_offered() -> None:
    """Ours: there is no place to send it to."""
    raw = with_parameter({"name": "p", "in": "path", "required": True, "schema": TEXT})

    assert fate(raw).status is Status.DEGRADED
    assert input_of(raw)["properties"] == {}


def test_too_many_parameters_are_refused() -> None:
    """Ours: a hostile operation costs itself."""
    names = [{"name": f"{'.' * 70}{n}", "in": "query", "schema": TEXT} for n in range(1_001)]

    assert fate(operation({"parameters": names})).status is Status.SKIPPED
    assert len(set(input_of(operation({"parameters": names[:1_000]}))["properties"])) == 1_000


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_a_path_item_has_the_parameters_of_its_reference_and_its_own(version: str) -> None:
    """Ours: OpenAPI leaves it open; both are meant (OAS-2)."""
    kind: dict[str, Any] = {"type": "string"} if version == "2.0" else {"schema": {"type": "string"}}
    wider: dict[str, Any] = {"type": "integer"} if version == "2.0" else {"schema": {"type": "integer"}}
    shared: dict[str, Any] = {
        "parameters": [{"name": "id", "in": "path", "required": True, **kind}, {"name": "v", "in": "query", **kind}],
        "get": {},
    }
    item = {
        "$ref": "#/x-items/pet",
        "parameters": [{"name": "v", "in": "query", **wider}, {"name": "w", "in": "query", **kind}],
    }
    written: dict[str, Any] = {**document({"/pets/{id}": item}, version=version), "x-items": {"pet": shared}}
    if version == "2.0":
        written = {"swagger": "2.0", "host": "h", **{key: written[key] for key in ("info", "paths", "x-items")}}
    schema = input_of(written)

    assert fate(written).reasons == ()
    assert {name: part["type"] for name, part in schema["properties"].items()} == {
        "id": "string",
        "v": "integer",
        "w": "string",
    }
