"""Choices: the effect of a discriminator on their branches, and branches that nothing decides."""

from typing import Any

import pytest

from tests.support.openapi import accepts, body_of, compile_it, definition_of, fate, input_of, with_body

CAT = {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}, "required": ["kind"]}
DOG = {"type": "object", "properties": {"kind": {"type": "string"}, "bark": {"type": "string"}}, "required": ["kind"]}
BOTH = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]


def choice(*, keyword: str = "oneOf", cat: Any = CAT, dog: Any = DOG, **more: Any) -> dict[str, Any]:
    """A document whose body is a cat or a dog, distinguished by `kind`."""
    discriminator = {"propertyName": "kind", **({"mapping": more.pop("mapping")} if "mapping" in more else {})}
    schema = {keyword: BOTH, "discriminator": discriminator}
    return with_body(schema, components={"schemas": {"Cat": cat, "Dog": dog}}, **more)


def branches(document: dict[str, Any], keyword: str = "oneOf") -> list[Any]:
    """Constraint on `kind` in each branch of the body."""
    body = input_of(document)["properties"]["body"]
    return [branch.get("properties", {}).get("kind") for branch in body[keyword]]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
@pytest.mark.parametrize(
    ("mapping", "cat", "dog"),
    [
        ({"cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog"}, "cat", "dog"),
        ({"cat": "Cat", "dog": "schemas/Dog.json"}, "cat", "dog"),
        ({"cat": "Cat"}, "cat", "Dog"),
        ({}, "Cat", "Dog"),
        ({"cat": "Cat", "bird": "#/components/schemas/Bird", "x": 3}, "cat", "Dog"),
    ],
)
def test_a_discriminator_becomes_a_constant_of_each_branch(
    version: str, mapping: dict[str, Any], cat: str, dog: str
) -> None:
    """OpenAPI: mapping, or the names of the schemas, decide one branch (OAS-8)."""
    document = choice(mapping=mapping, version=version)
    schema = input_of(document)

    assert branches(document) == [{"const": cat}, {"const": dog}]
    assert accepts(schema, {"body": {"kind": cat, "lives": 9}})
    assert not accepts(schema, {"body": {"kind": cat, "lives": "nine"}})
    assert not accepts(schema, {"body": {"kind": "fish"}})


def test_several_values_of_one_branch_are_a_list() -> None:
    """OpenAPI: a mapping may lead to one schema by several values (OAS-8)."""
    mapping = {"cat": "Cat", "kitten": "Cat", "dog": "Dog"}

    assert branches(choice(mapping=mapping)) == [{"enum": ["cat", "kitten"]}, {"const": "dog"}]


def test_values_that_the_branches_declare_themselves_count_more_than_the_mapping() -> None:
    """Ours: a mapping that contradicts the schemas would leave nothing that fits (OAS-8)."""
    cat = {**CAT, "properties": {"kind": {"enum": ["feline"]}}}
    dog = {**DOG, "properties": {"kind": {"const": "canine"}}}
    document = choice(cat=cat, dog=dog, mapping={"cat": "Cat", "dog": "Dog"})

    assert accepts(input_of(document), {"body": {"kind": "feline"}})
    assert not accepts(input_of(document), {"body": {"kind": "cat"}})


def kinds(cat: Any, dog: Any, **more: Any) -> dict[str, Any]:
    """A document whose branches declare `kind` with these schemas."""
    schemas = [{**schema, "properties": {"kind": kind}} for schema, kind in ((CAT, cat), (DOG, dog))]
    return choice(cat=schemas[0], dog=schemas[1], **more)


@pytest.mark.parametrize(
    ("cat", "dog", "version", "value"),
    [
        ({"allOf": [{"type": "string"}, {"enum": ["cat"]}], "default": "cat"}, {"enum": ["dog"]}, "3.0.3", "cat"),
        ({"type": "string", "enum": ["cat", None], "nullable": True}, {"enum": ["dog", None]}, "3.0.3", "cat"),
        ({"type": ["string", "null"], "enum": ["cat", None]}, {"enum": ["dog", None]}, "3.1.0", "cat"),
        ({"enum": ["cat", 1]}, {"enum": ["dog", 2]}, "3.1.0", 1),
        ({"anyOf": [{"const": "cat"}, {"const": "kitten"}]}, {"const": "dog"}, "3.1.0", "kitten"),
        ({"type": "integer", "enum": [1]}, {"type": "integer", "enum": [2]}, "3.0.3", 1),
        ({"const": True}, {"const": False}, "3.1.0", True),
    ],
)
@pytest.mark.parametrize("mapping", [{}, {"1": "#/components/schemas/Cat", "2": "#/components/schemas/Dog"}])
def test_values_that_a_branch_lists_in_any_form_decide(
    cat: Any, dog: Any, version: str, value: object, mapping: dict[str, str]
) -> None:
    """Ours: parts, choices, null and other types than string are read before a name is assumed (OAS-8)."""
    schema = input_of(kinds(cat, dog, version=version, mapping=mapping))

    assert accepts(schema, {"body": {"kind": value}})
    assert not accepts(schema, {"body": {"kind": "Cat"}})


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "integer"},
        {"type": "string", "pattern": "^c"},
        {"type": "string", "maxLength": 2},
        {"allOf": [{"type": "boolean"}]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"type": "string", "readOnly": True},
        False,
    ],
)
def test_a_name_that_a_branch_does_not_allow_is_not_added(kind: Any) -> None:
    """Ours: a branch that no value fits is worse than branches that overlap (OAS-8)."""
    body = input_of(kinds(kind, kind))["properties"]["body"]

    assert body == {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}


@pytest.mark.parametrize(
    "others", [{"additionalProperties": False}, {"patternProperties": {"^k": {"type": "integer"}}}]
)
def test_a_branch_that_does_not_declare_the_property_may_refuse_it(others: Any) -> None:
    """Ours: a closed schema without the property has no value that selects it (OAS-8)."""
    cat = {"type": "object", "required": ["lives"], "properties": {"lives": {"type": "integer"}}, **others}

    assert accepts(input_of(choice(cat=cat)), {"body": {"lives": 9}})
    assert "anyOf" in input_of(choice(cat=cat))["properties"]["body"]


def test_a_choice_inside_a_branch_has_its_own_values() -> None:
    """Ours: a branch that is a choice by the same property is selected by the values of its branches (OAS-8)."""
    leaf = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
    refs = {name: {"$ref": f"#/components/schemas/{name}"} for name in ("Poodle", "Beagle", "Cat", "Dog")}
    by_kind = {"discriminator": {"propertyName": "kind"}}
    dog = {"oneOf": [refs["Poodle"], refs["Beagle"]], **by_kind}
    schemas = {"Cat": leaf, "Dog": dog, "Poodle": leaf, "Beagle": leaf}
    schema = input_of(with_body({"oneOf": [refs["Cat"], refs["Dog"]], **by_kind}, components={"schemas": schemas}))

    assert [accepts(schema, {"body": {"kind": kind}}) for kind in ("Cat", "Poodle", "Beagle", "Dog")] == [
        True,
        True,
        True,
        False,
    ]


def test_subtypes_that_a_branch_implies_keep_their_values() -> None:
    """Ours: the value of a branch does not exclude the subtypes that the branch covers (OAS-8)."""
    poodle = {"allOf": [{"$ref": "#/components/schemas/Dog"}, {"properties": {"curls": {"type": "integer"}}}]}
    document = choice(dog={**DOG, "discriminator": {"propertyName": "kind"}})
    document["components"]["schemas"]["Poodle"] = poodle
    schema = input_of(document)

    assert [accepts(schema, {"body": {"kind": kind}}) for kind in ("Cat", "Dog", "Poodle")] == [True, True, True]


def test_results_of_a_branch_are_accepted() -> None:
    """Ours: a client that validates a result accepts each value that the response declares (OAS-8)."""
    document = kinds({"allOf": [{"enum": ["cat"]}]}, {"allOf": [{"enum": ["dog"]}]})
    body = document["paths"]["/x"]["post"].pop("requestBody")
    content = {
        "application/json": {
            "schema": {"type": "object", "properties": {"pet": body["content"]["application/json"]["schema"]}}
        }
    }
    document["paths"]["/x"]["post"]["responses"] = {"200": {"description": "", "content": content}}
    [operation] = compile_it(document, output_schemas=True).operations

    assert accepts(definition_of(operation)["outputSchema"], {"pet": {"kind": "cat"}})


def test_choices_in_choices_are_read_to_a_limit() -> None:
    """Ours: a discriminator over many levels, or over itself, costs a bounded number of schemas (TEN-5)."""
    by_kind = {"discriminator": {"propertyName": "kind"}}
    refs = [{"$ref": f"#/components/schemas/N{level}"} for level in range(31)]
    schemas: dict[str, Any] = {f"N{n}": {"oneOf": [refs[n + 1]] * 30, **by_kind} for n in range(30)}
    schemas |= {"N30": {"oneOf": [refs[0], {"$ref": "#/components/schemas/Cat"}], **by_kind}, "Cat": CAT}

    assert fate(with_body(refs[0], components={"schemas": schemas})).tool is not None


def test_a_list_that_all_branches_share_does_not_decide_so_the_mapping_does() -> None:
    """Ours: branches often inherit the list of all kinds (OAS-8)."""
    kinds = {"kind": {"enum": ["cat", "dog"]}}
    document = choice(
        cat={**CAT, "properties": kinds}, dog={**DOG, "properties": kinds}, mapping={"cat": "Cat", "dog": "Dog"}
    )

    assert branches(document) == [{"const": "cat"}, {"const": "dog"}]


@pytest.mark.parametrize(
    "mapping",
    [{"same": "Cat", "dog": "Dog"}, {"x": "Cat", "y": "Nowhere"}],
)
def test_a_property_that_a_branch_does_not_require_may_be_absent(mapping: dict[str, str]) -> None:
    """Ours: an API may take a value without the discriminator, so the choice stays open (OAS-8)."""
    document = choice(cat={**CAT, "required": []}, mapping=mapping)

    assert accepts(input_of(document), {"body": {"lives": 9}})
    assert not accepts(input_of(document), {"body": {"kind": "fish"}})


def test_branches_without_a_difference_may_overlap() -> None:
    """Ours: a value that fits two branches is one that the API takes (OAS-8)."""
    cat = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {"oneOf": [cat, {"type": "object", "properties": {"size": {"type": "integer"}}}]}

    assert body_of(schema) == {"anyOf": schema["oneOf"]}
    assert accepts(input_of(with_body(schema)), {"body": {"name": "a", "size": 1}})


def test_a_choice_beside_another_keeps_both() -> None:
    """Ours: `oneOf` and `anyOf` of one schema both have to hold."""
    listed = body_of({"anyOf": [{"type": "string"}], "oneOf": [{"minLength": 1}, {"maxLength": 3}]})

    assert listed == {"anyOf": [{"type": "string"}], "allOf": [{"anyOf": [{"minLength": 1}, {"maxLength": 3}]}]}


@pytest.mark.parametrize("keyword", ["not", "if"])
def test_a_choice_that_is_negated_stays_as_it_is(keyword: str) -> None:
    """Ours: below `not`, a looser choice would refuse more."""
    schema = {keyword: {"oneOf": [{"type": "string"}, {"maxLength": 3}]}}

    assert body_of(schema) == schema


@pytest.mark.parametrize(
    ("name", "schemas"),
    [
        ("a circle of parts", {"Cat": {"allOf": [BOTH[1]]}, "Dog": {"allOf": [BOTH[0]]}}),
        ("a branch that is itself", {"Cat": {"$ref": "#/components/schemas/Cat"}, "Dog": DOG}),
        ("no schemas", {}),
        ("a mapping of itself", {"Cat": {"oneOf": BOTH, "discriminator": {"propertyName": "kind"}}, "Dog": DOG}),
        ("no objects", {"Cat": True, "Dog": {"type": "string"}}),
    ],
)
def test_hostile_hierarchies_compile(name: str, schemas: dict[str, Any]) -> None:
    """Ours: circles, missing schemas and booleans cost neither the import nor the operation."""
    mapping = {"a": "#/components/schemas/Cat", "b": "#/components/schemas/Cat", "c": "#", "d": "#/%", "e": ""}
    schema = {"oneOf": BOTH, "discriminator": {"propertyName": "kind", "mapping": mapping}}
    report = fate(with_body(schema, components={"schemas": schemas}))

    assert report.tool is not None, name


def test_wide_hierarchies_are_read_in_bounded_time() -> None:
    """Ours: parts of parts are visited once each, not once per way to them."""
    schemas: dict[str, Any] = {
        f"L{level}": {"allOf": [{"$ref": f"#/components/schemas/L{level + 1}"}] * 50, "properties": {"a": {}}}
        for level in range(8)
    }
    schemas |= {"L8": CAT}
    schema = {"oneOf": [{"$ref": "#/components/schemas/L0"}] * 20, "discriminator": {"propertyName": "kind"}}

    assert fate(with_body(schema, components={"schemas": schemas})).tool is not None


def test_implied_subtypes_have_their_values_and_refuse_nothing() -> None:
    """OpenAPI: subtypes of a schema with a discriminator are shown with the value that means them (OAS-8)."""
    base = {**CAT, "discriminator": {"propertyName": "kind", "mapping": {"lion": "Lion"}}}
    lion = {"allOf": [{"$ref": "#/components/schemas/Cat"}, {"properties": {"mane": {"type": "boolean"}}}]}
    document = with_body({"$ref": "#/components/schemas/Cat"}, components={"schemas": {"Cat": base, "Lion": lion}})

    assert branches(document, "anyOf") == [None, {"const": "lion"}]
    assert accepts(input_of(document), {"body": {"kind": "tiger"}})
