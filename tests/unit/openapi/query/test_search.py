"""Operations that words find, their order, and suggestions for an unknown name."""

import itertools
import random
import string
from collections.abc import Iterator

import pytest

from gateway.openapi.query.limits import FIELDS, MAX_POSTINGS
from gateway.openapi.query.outline import OutlinedOperation
from gateway.openapi.query.search import Ranking, search
from gateway.openapi.query.word_index import WordIndex
from gateway.openapi.query.words import is_near, split_words, suggest
from tests.support.openapi import compile_it, operation
from tests.support.queries import view_of_compiled

SHOP = (
    OutlinedOperation(
        method="GET", path="/customers", operation_id="listCustomers", summary="All customers", tags=("people",)
    ),
    OutlinedOperation(method="POST", path="/customers", operation_id="createCustomer", summary="A new customer"),
    OutlinedOperation(
        method="DELETE", path="/customers/{id}", operation_id="removeCustomer", parameters=("id", "force")
    ),
    OutlinedOperation(
        method="GET", path="/customers/{id}/invoices", operation_id="listCustomerInvoices", summary="Invoices"
    ),
    OutlinedOperation(
        method="GET", path="/policies", operation_id="getPolicies", description="Rules of receiving the goods."
    ),
    OutlinedOperation(method="GET", path="/käufer/ユーザー一覧", summary="Käufer"),
)


@pytest.fixture(scope="module")
def words() -> WordIndex:
    """The words of the shop."""
    return WordIndex(SHOP)


def found(words: WordIndex, query: str, field: str | None = None) -> list[str]:
    """Hits of the words, the best first."""
    return [hit.endpoint.identity for hit in search(words, query, field)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("customer list", "GET /customers"),
        ("LISTCUSTOMERS", "GET /customers"),
        ("create_customer", "POST /customers"),
        ("invoice of a customer", "GET /customers/{id}/invoices"),
        ("delete customer", "DELETE /customers/{id}"),
        ("force", "DELETE /customers/{id}"),
        ("people", "GET /customers"),
        ("policy", "GET /policies"),
        ("custom", "POST /customers"),
        ("ユーザー", "GET /käufer/ユーザー一覧"),
        ("KÄUFER", "GET /käufer/ユーザー一覧"),
    ],
)
def test_words_find_the_meant_operation(words: WordIndex, query: str, first: str) -> None:
    """Ours: words in any order, case and form, in names written together, of any field; the method helps (OAS-5)."""
    assert found(words, query)[0] == first


@pytest.mark.parametrize("query", ["custmoer", "cusotmers", "custommer", "recieving", "polices"])
def test_a_slip_of_the_pen_is_forgiven(words: WordIndex, query: str) -> None:
    """Ours: a word that occurs nowhere finds those that are a slip away from it (OAS-5)."""
    assert search(words, query, None)


@pytest.mark.parametrize("query", ["", "   ", "§", "qqqq", "x" * 2000, "zebra quagga"])
def test_a_missing_word_finds_nothing(words: WordIndex, query: str) -> None:
    """Ours: nothing is made up where no word fits."""
    assert found(words, query) == []


def test_the_order_is_that_of_relevance(words: WordIndex) -> None:
    """Ours: the figure that is shown never rises from one hit to the next (OAS-5)."""
    for query in ("list customers invoices id get", "customer", "a e i o u", "get all"):
        ranks = [hit.relevance for hit in search(words, query, None)]
        assert ranks == sorted(ranks, reverse=True), query
    assert all(hit.relevance > 0 for hit in search(words, "customer", None))


@pytest.mark.parametrize(("field", "query"), [*((field, "customer") for field in ("path", "operationId", "summary"))])
def test_a_field_can_be_searched_alone(words: WordIndex, field: str, query: str) -> None:
    """Ours: an operation that fits in other fields only is no hit then (OAS-5)."""
    hits = search(words, query, field)

    assert hits
    assert all(hit.fields == (field,) for hit in hits)
    assert found(words, "force", field) == []
    assert found(words, "goods", "description") == ["GET /policies"]


def test_rare_words_count_more_than_common_ones() -> None:
    """Ours: a word of nearly every operation distinguishes little."""
    many = [OutlinedOperation(method="GET", path=f"/user/user{n}", operation_id=f"user{n}") for n in range(50)]
    seen = WordIndex([*many, OutlinedOperation(method="GET", path="/x/audit", summary="The audit of a user")])

    assert search(seen, "user audit", None)[0].endpoint.path == "/x/audit"


def test_words_of_every_question_find_nothing_beside_others() -> None:
    """Ours: a question is a sentence; an operation that has only its `the`, `of` and `to` is no hit (OAS-5)."""
    operations = [
        OutlinedOperation(method="GET", path="/a", description="What to do for the use of it, and with me."),
        OutlinedOperation(method="GET", path="/b", description="Weather of a town."),
    ]

    assert found(WordIndex(operations), "What is the weather, and can you send it to me?") == ["GET /b"]
    assert found(WordIndex(operations), "how to use it")[0] == "GET /a"  # a question of nothing else is one of those


def test_a_word_that_is_repeated_in_a_short_text_counts_more() -> None:
    """Ours: BM25F, so how often a word occurs and how long the text is count (OAS-5)."""
    filler = " ".join(f"word{number}" for number in range(60))
    operations = [
        OutlinedOperation(method="GET", path="/long", description=f"invoice {filler}"),
        OutlinedOperation(method="GET", path="/short", description="invoice paid"),
        OutlinedOperation(method="GET", path="/often", description="invoice invoice"),
    ]

    assert found(WordIndex(operations), "invoice") == ["GET /often", "GET /short", "GET /long"]


def test_members_of_bodies_and_descriptions_of_arguments_are_found() -> None:
    """Ours: members of a body at any level are in the index, by name and by description (OAS-5)."""
    inner = {"type": "object", "properties": {"cellarShelf": {"type": "string", "description": "Where bottles lie."}}}
    body = {"type": "object", "properties": {"places": {"type": "array", "items": inner}}}
    query = {"name": "q", "in": "query", "description": "A vintage.", "schema": {"type": "string"}}
    content = {"requestBody": {"content": {"application/json": {"schema": body}}}, "parameters": [query]}
    index = view_of_compiled(compile_it(operation(content, method="post"), outline=True)).api.words

    for question in ("cellar shelf", "bottles", "vintage", "places"):
        assert found(index, question) == ["POST /x"], question


def test_the_index_of_a_document_is_bounded() -> None:
    """Ours: a document made of nothing but different words costs no more than one of the largest real ones."""
    letters = random.Random(5)
    text = [" ".join("".join(letters.choices(string.ascii_lowercase, k=5)) for _ in range(330)) for _ in range(1000)]
    hostile = [OutlinedOperation(method="GET", path=f"/p{n}", description=reported) for n, reported in enumerate(text)]
    seen = WordIndex(hostile)

    assert seen.size <= 170 * MAX_POSTINGS
    assert search(seen, "p999", None)[0].endpoint.path == "/p999"  # names go before descriptions


@pytest.mark.parametrize(
    "query",
    [
        "a" * 2000,
        "A" * 1999 + "!",
        "aA" * 1000,
        "(a+)+$" * 300,
        "_" * 2000,
        "9a" * 1000,
        "ﷺ" * 2000,
        " ".join("abcdefgh"),
    ],
)
def test_every_query_comes_to_an_end(query: str) -> None:
    """Ours: the search for words never goes back over the text, and finds every word (OAS-5)."""
    seen = WordIndex([OutlinedOperation(method="GET", path=f"/things/{n}", description=query) for n in range(200)])

    assert len(search(seen, query, "description")) == (200 if split_words(query) else 0)


@pytest.mark.parametrize(
    ("wanted", "names", "first"),
    [
        ("Bok", ["Author", "Book"], "Book"),
        ("pt", ["pet", "order"], "pet"),
        ("user", ["UserProfileSettingsResponse", "Order"], "UserProfileSettingsResponse"),
        ("GET /pet/{id}", ["GET /pets/{petId}", "POST /orders"], "GET /pets/{petId}"),
        ("LISTPETS", ["listPets", "listOrders"], "listPets"),
    ],
)
def test_the_nearest_name_is_suggested_first(wanted: str, names: list[str], first: str) -> None:
    """Ours: a name with a slip, a part of a name, and one in other capitals lead to the one that is there (OAS-5)."""
    assert suggest(wanted, names)[0] == first


def test_a_suggestion_is_similar_to_the_question() -> None:
    """Ours: at most five names, each like the wanted one; none at all rather than just any."""
    assert suggest("zzz", ["Book", "Author"]) == []
    assert len(suggest("Book", [f"Book{n}" for n in range(50)])) == 5


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abc", "ab", 1),
        ("abc", "abxc", 1),
        ("abc", "xyz", 3),
        ("", "ab", 2),
        ("invoices", "inovicse", 2),
        ("a" * 38 + "bc", "a" * 38 + "cb", 1),
    ],
)
def test_slips_are_counted(one: str, other: str, slips: int) -> None:
    """Ours: a letter too many, too few, wrong, or swapped with the next is one slip."""
    assert is_near(one, other, slips)
    assert is_near(other, one, slips)
    assert not is_near(one, other, slips - 1)


def test_slips_of_random_words_are_those_of_the_matrix() -> None:
    """Ours: the comparison of whole columns gives the result of the comparison of single cells (OAS-5)."""
    letters = random.Random(11)

    def word() -> str:
        return "".join(letters.choices("abc", k=letters.randrange(9)))

    for one, other in ((word(), word()) for _ in range(2_000)):
        slips = _distance(one, other)
        assert [is_near(one, other, edits) for edits in range(4)] == [slips <= edits for edits in range(4)]


def _distance(one: str, other: str) -> int:
    """The edit distance by its definition."""
    if not one or not other:
        return len(one) + len(other)
    found = [_distance(one[:-1], other) + 1, _distance(one, other[:-1]) + 1] if one[-1] != other[-1] else []
    found.append(_distance(one[:-1], other[:-1]) + (one[-1] != other[-1]))
    if one[-1] != other[-1] and one[-2:] == other[-2:][::-1]:
        found.append(_distance(one[:-2], other[:-2]) + 1)
    return min(found)


def test_long_words_are_not_compared() -> None:
    """Ours: a comparison has at most forty steps, whatever a document and a question contain (ISO-2)."""
    assert is_near("a" * 40, "a" * 39 + "b", 1)
    assert not is_near("a" * 41, "a" * 40 + "b", 1)
    assert not is_near("a" * 40, "a" * 41, 1)


def test_a_question_computes_few_edit_distances() -> None:
    """Ours: the comparisons of all words of a question and all documents have one bound (ISO-2)."""
    asked = ("vvvvvvvvvv", "wwwwwwwwww")
    alike = [
        word[:place] + "".join(pair) + word[place + 2 :] for word in asked for place in range(8) for pair in _PAIRS
    ]
    operations = [OutlinedOperation(method="GET", path=f"/{n}", summary=word) for n, word in enumerate(alike)]
    indexes = [WordIndex(operations[::2]), WordIndex(operations[1::2])]

    found = Ranking(indexes, " ".join(asked), None).best([b"\1" * len(index) for index in indexes])

    assert len(operations) > 2_500
    assert len(found) == 2_000


_PAIRS = list(itertools.permutations("abcdefghijklmn", 2))


def test_every_matched_field_can_be_searched(words: WordIndex) -> None:
    """Ours: `matchedFields` speaks the language of `searchIn`."""
    assert {field for hit in search(words, "customer id list people", None) for field in hit.fields} <= set(FIELDS)


class _Counting(WordIndex):
    """An index that notes which words were looked up."""

    asked: list[str]

    def postings(self, word: str) -> Iterator[tuple[int, float, int]]:
        self.asked.append(word)
        return super().postings(word)


def test_a_long_question_looks_up_its_rarest_words() -> None:
    """Ours: the work of a question is bounded, and the rarest words count most (ISO-2)."""
    letters = random.Random(7)
    words = ["".join(letters.choices(string.ascii_lowercase, k=6)) for _ in range(2_000)]
    index = _Counting(
        [
            OutlinedOperation(method="GET", path="/rare", description=" ".join(words)),
            *(OutlinedOperation(method="GET", path=f"/{n}", description=" ".join(words[1:])) for n in range(3)),
        ]
    )
    index.asked = []

    hits = search(index, " ".join(reversed(words)))

    assert len(index.asked) == 256
    assert hits[0].endpoint.path == "/rare"
    assert index.asked[0] == split_words(words[0])[0]
