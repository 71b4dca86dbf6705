"""Bodies and query strings as models, and the faults of those that are not."""

import json

import pytest

from gateway.admin.limits import MAX_REST_BYTES
from gateway.admin.requests.audit import AuditQuery
from gateway.admin.requests.sources import SourceCreate, SourceReplace, SourceUpdate
from gateway.admin.validation import read_body, read_query
from gateway.errors import BadInput, DocumentTooLarge, InvalidBody
from gateway.kinds.identity import KEY, TENANT
from gateway.kinds.singletons import POLICY
from gateway.web.kinds.models import models_of
from gateway.web.kinds.singleton_models import singleton_models_of
from gateway.web.models import BodyModel, NoBody, NoQuery, PageQuery

TENANT_CREATE = models_of(TENANT).create
KEY_CREATE, KEY_UPDATE = models_of(KEY).create, models_of(KEY).change


async def _faults(body: object, model: type[BodyModel]) -> dict[str, str]:
    with pytest.raises(InvalidBody) as caught:
        await read_body(json.dumps(body).encode(), model)
    return {fault.pointer: fault.reason for fault in caught.value.faults}


async def test_every_fault_of_a_body_is_named_with_its_place() -> None:
    """Ours: a refusal names each field that is wrong, what is allowed, and where."""
    faults = await _faults({"name": "", "scopes": ["mcp", "fly"], "colour": 1}, KEY_CREATE)
    assert set(faults) == {"/name", "/scopes/1", "/colour"}
    assert "approve" in faults["/scopes/1"]
    assert "subject" in faults["/colour"]


async def test_a_missing_field_is_named() -> None:
    """Ours: a required and absent member is a fault at its own place."""
    assert await _faults({"scopes": ["mcp"]}, KEY_CREATE) == {"/name": "required"}


async def test_a_fault_inside_an_alternative_has_a_plain_pointer() -> None:
    """RFC 6901: a pointer leads into what was sent, never into our models."""
    body = {"name": "a", "url": "https://example.com", "credentials": {"a/b~c": {"value": 5}}}
    faults = await _faults(body, SourceCreate)
    assert "/credentials/a~1b~0c/value" in faults
    assert not any("Secret" in pointer or "str" in pointer for pointer in faults)


async def test_a_refusal_never_repeats_a_secret() -> None:
    """Ours: credentials are write-only, also when they are refused (TEN-4)."""
    secret = "s3cr3t\r\nX: y"
    with pytest.raises(InvalidBody) as caught:
        await read_body(
            json.dumps({"name": "a", "document": {}, "credentials": {"k": secret, "l": [secret]}}).encode(),
            SourceCreate,
        )
    assert "s3cr3t" not in repr((caught.value.message, caught.value.faults))


@pytest.mark.parametrize("value", ["1", 1.5, True, None, [], -1, 0, 10**12])
async def test_values_are_not_converted(value: object) -> None:
    """Ours: a count is a JSON integer within its bounds and nothing else."""
    assert set(await _faults({"limits": {"burst": value}}, singleton_models_of(POLICY).change)) == {"/limits/burst"}


@pytest.mark.parametrize(
    "time",
    ["tomorrow", "2030-01-01", "2030-01-01T00:00:00", 1900000000, "2030-13-01T00:00:00Z", "0001-01-01T00:00:00+23:00"],
)
async def test_a_time_needs_its_offset(time: object) -> None:
    """RFC 3339: a moment without an offset is no moment."""
    assert set(await _faults({"name": "a", "scopes": ["mcp"], "expires_at": time}, KEY_CREATE)) == {"/expires_at"}


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example",
        "/openapi.json",
        "https://",
        "https://u:p@a.example/",
        "https://a.example/#x",
        "https://a b/",
        "http://[::1",
    ],
)
async def test_a_url_is_absolute_plain_and_without_a_login(url: str) -> None:
    """Ours: logins are stored as credentials, never in a URL that is shown again."""
    assert set(await _faults({"name": "a", "url": url}, SourceCreate)) == {"/url"}


@pytest.mark.parametrize("body", [{"name": "a"}, {"name": "a", "document": {}, "url": "https://a.example/"}])
async def test_an_import_has_one_origin(body: object) -> None:
    """Ours: a document comes from the body, a URL or an archive, not from several and not from none."""
    assert await _faults(body, SourceCreate) == {"": "needs exactly one of document, url and archive"}
    assert await _faults({"document": {}, "archive": {"base64": "eA=="}}, SourceReplace) == {
        "": "needs at most one of document, url and archive"
    }


async def test_a_form_is_explained_in_words() -> None:
    """Ours: the message explains the form of a name without a pattern."""
    with pytest.raises(InvalidBody, match="small letters, digits and hyphens"):
        await read_body(b'{"slug": "Acme"}', TENANT_CREATE)
    with pytest.raises(InvalidBody, match="at least 1 item, not 0"):
        await read_body(b'{"name": "a", "scopes": []}', KEY_CREATE)


async def test_absent_and_null_differ() -> None:
    """Ours: null ends nothing by accident; an end that is null means never."""
    assert (await read_body(b'{"expires_at":null}', KEY_UPDATE)).model_fields_set == {"expires_at"}
    with pytest.raises(InvalidBody, match="must not be null"):
        await read_body(b'{"name":null}', KEY_UPDATE)


async def test_broken_json_has_line_and_column() -> None:
    """Ours: malformed JSON is refused with the place where it breaks."""
    with pytest.raises(InvalidBody) as caught:
        await read_body(b'{\n  "slug": }', TENANT_CREATE)
    assert (caught.value.faults[0].line, caught.value.faults[0].column) == (2, 11)


@pytest.mark.parametrize("raw", [b"[]", b'"a"', b"1", b"null", b""])
async def test_a_body_is_an_object(raw: bytes) -> None:
    """Ours: nothing but an object is a body."""
    with pytest.raises(InvalidBody):
        await read_body(raw, TENANT_CREATE)


async def test_a_request_without_body_takes_none_or_an_empty_object() -> None:
    """Ours: fields that would be ignored are refused."""
    assert await read_body(b"", NoBody) == await read_body(b" {} ", NoBody)
    with pytest.raises(InvalidBody):
        await read_body(b'{"force":true}', NoBody)


async def test_a_large_body_is_read_all_the_same() -> None:
    """Ours: a body that is parsed in a thread has the same result."""
    document = {"paths": {f"/p{number}": {"description": "x" * 100} for number in range(5000)}}
    read = await read_body(json.dumps({"document": document}).encode(), SourceUpdate)
    assert read.document == document


def test_a_query_is_read() -> None:
    """Ours: query parameters arrive as text and become their types."""
    query = read_query([("limit", "7"), ("kind", "call"), ("since", "2030-01-01T00:00:00Z")], AuditQuery)
    assert (query.limit, query.kind, query.cursor) == (7, "call", None)


@pytest.mark.parametrize(
    ("pairs", "pointer"),
    [
        ([("limit", "0")], "?limit"),
        ([("limit", "201")], "?limit"),
        ([("limit", "x")], "?limit"),
        ([("page", "2")], "?page"),
        ([("limit", "1"), ("limit", "2")], "?limit"),
    ],
)
def test_a_query_parameter_that_is_not_allowed_is_named(pairs: list[tuple[str, str]], pointer: str) -> None:
    """Ours: an unknown, repeated or wrong parameter is refused by name."""
    with pytest.raises(BadInput) as caught:
        read_query(pairs, PageQuery)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]


def test_a_route_without_parameters_refuses_all() -> None:
    """Ours: a parameter that would be ignored is refused."""
    with pytest.raises(BadInput):
        read_query([("dry_run", "true")], NoQuery)


async def test_a_very_large_body_has_the_meaning_of_a_small_one() -> None:
    """Ours: white space after a body does not make it large, and the rules are the same."""
    large = " " * 1_100_000
    body = json.dumps({"name": "a", "document": {"x": "ä"}, "prefix": "p"}) + large
    read = await read_body(body.encode(), SourceCreate)
    assert (read.name, read.document, read.prefix) == ("a", {"x": "ä"}, "p")
    for raw in ('{"name":"a","name":"b"}', "[]", '{"name":', '{"document":7}', '{"document":{"a":1,"a":2}}'):
        with pytest.raises(InvalidBody):
            await read_body((raw + large).encode(), SourceCreate)


LARGE_TEXT = '\\"\n{ä' * 200_000


@pytest.mark.parametrize("document", [{"x": LARGE_TEXT}, LARGE_TEXT])
async def test_a_large_document_stays_json(document: object) -> None:
    """Ours: a document above 1 MiB is cut out of its body and becomes no object here; the rest is read as ever."""
    sent = json.dumps(document)
    body = json.dumps({"name": "a", "prefix": "p"})[:-1] + f', "docu\\u006dent" : {sent} , "dry_run": true}}'
    read = await read_body(body.encode(), SourceCreate)
    assert (read.name, read.document, read.prefix, read.dry_run) == ("a", sent.encode(), "p", True)


async def test_a_large_archive_stays_json() -> None:
    """Ours: the base64 of an archive above 1 MiB is cut out; the name of its root document is read."""
    sent = {"base64": "A" * 2_000_000, "entry": "a.yaml"}
    read = await read_body(json.dumps({"document": None, "archive": sent}).encode(), SourceReplace)
    assert read.archive is not None
    assert (read.archive.base64, read.archive.entry) == (json.dumps(sent["base64"]).encode(), "a.yaml")


async def test_a_document_that_equals_another_member_is_not_mistaken_for_it() -> None:
    """Ours: an empty object of credentials stays one, whatever else of the body equals it."""
    read = await read_body(_padded('{"name":"a","credentials":{},"document":{}}'), SourceCreate)
    assert (read.credentials, read.document) == ({}, {})
    read = await read_body(_padded('{"name":"document","document":"document"}'), SourceCreate)
    assert (read.name, read.document) == ("document", "document")


def _padded(body: str) -> bytes:
    """The body with one byte more than is parsed whole."""
    return f"{body[:-1].ljust(MAX_REST_BYTES)}}}".encode()


@pytest.mark.parametrize("after", ["\x0b", "\x0c", "\xa0"])
async def test_only_white_space_of_json_may_follow_a_body(after: str) -> None:
    """RFC 8259: space, tab, line feed and carriage return."""
    assert (await read_body(b'{"name":"a","document":{}} \t\r\n', SourceCreate)).name == "a"
    with pytest.raises(InvalidBody):
        await read_body(f'{{"name":"a","document":{{}}}}{after}'.encode(), SourceCreate)


async def test_a_document_is_cut_out_where_it_is() -> None:
    """Ours: a member that begins like the document is not taken for it."""
    body = {"prefix": {"x": "y" * 100}, "document": {"x": "y" * 1_100_000}}
    with pytest.raises(InvalidBody) as caught:
        await read_body(json.dumps(body).encode(), SourceUpdate)
    assert [fault.pointer for fault in caught.value.faults] == ["/prefix"]


@pytest.mark.parametrize(
    ("body", "kind", "states"),
    [
        ('{"document":LARGE,"document":1}', DocumentTooLarge, "beside its document"),
        ('{"name":1,"document":LARGE,"name":1}', InvalidBody, "'name' occurs twice"),
        ('{"document":1,"document":LARGE}', InvalidBody, "'document' occurs twice"),
        ('{"document":LARGE,"name":NaN}', InvalidBody, "malformed: invalid character"),
        ('{"document":LARGE,\n"name":}', InvalidBody, r"line 2, column 8\)"),
        ('{"document":LARGE', InvalidBody, "line 1, column"),
        ('{"document":LARGE,"name":"\\ud800"}', InvalidBody, "an unpaired surrogate"),
        ('{"document":{"x":' + "[" * 2_000_000, InvalidBody, "nested"),
        ('{"document":' + '{"a":' * 300_000, InvalidBody, "nested"),
        ("[LARGE]", InvalidBody, "must be a JSON object"),
        ("\ufeff{}LARGE", InvalidBody, "not acceptable JSON"),
        ('{"document":7,"name":LARGE}', DocumentTooLarge, "beside its document"),
        ('{"archive":7,"name":LARGE}', DocumentTooLarge, "beside its document"),
        ('{"archive":{"entry":LARGE}}', DocumentTooLarge, "beside its document"),
        ('{"name":"' + "x" * (1024 * 1024 - 10) + '"}', DocumentTooLarge, "beside its document"),
        ('{"document":"x","archive":{"base64":LARGE}}', DocumentTooLarge, "beside its document"),
        ('{"document":LARGE,"colour":1}', InvalidBody, "/colour: unknown field"),
    ],
)
async def test_a_very_large_body_is_held_to_the_same_rules(body: str, kind: type[Exception], states: str) -> None:
    """Ours: the size of a document excuses nothing in the rest of its body (ISO-2)."""
    with pytest.raises(kind, match=states):
        await read_body(body.replace("LARGE", json.dumps("x" * 1_100_000)).encode(), SourceUpdate)
