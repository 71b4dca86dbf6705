"""The library's API, as `openapi.yaml` describes it: an ordinary web service without knowledge of MCP."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import cast

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.library.picture import draw_png

_FIELDS = ("number", "title", "author", "year", "lent_to")
_MAX_BODY = 64 * 1024
_MAX_NUMBER = 2**31 - 1
_MAX_SECONDS = 20.0
_HOURS = (("Monday", "10:00", "18:00"), ("Wednesday", "10:00", "20:00"), ("Saturday", "09:00", "13:00"))


class Refused(Exception):
    """A refusal of the library, with an HTTP status and the reason."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """One book; `lent_to` is the reader that has borrowed it."""

    number: int
    title: str
    author: str
    year: int | None = None
    lent_to: str | None = None

    def shown(self, fields: tuple[str, ...] = _FIELDS) -> dict[str, object]:
        """Return the book as a response body."""
        return {name: getattr(self, name) for name in _FIELDS if name in fields}


class Library:
    """The books, in memory; a new library always begins with the same four."""

    def __init__(self) -> None:
        first = (
            ("The Wind in the Willows", "Kenneth Grahame", 1908),
            ("Middlemarch", "George Eliot", 1871),
            ("Moby-Dick", "Herman Melville", 1851),
            ("Silas Marner", "George Eliot", 1861),
        )
        self._books = {
            number: Book(number=number, title=title, author=author, year=year)
            for number, (title, author, year) in enumerate(first, start=1)
        }
        self._next = len(first) + 1

    def all(self) -> list[Book]:
        """Return every book, by title."""
        return sorted(self._books.values(), key=lambda book: (book.title, book.number))

    def find(self, number: int) -> Book:
        """Return the book of this number."""
        if number not in self._books:
            raise Refused(404, "No such book", f"There is no book with the number {number}.")
        return self._books[number]

    def add(self, *, title: str, author: str, year: int | None) -> Book:
        """Add a book under the next number."""
        book = Book(number=self._next, title=title, author=author, year=year)
        self._next += 1
        return self.keep(book)

    def keep(self, book: Book) -> Book:
        """Store the book and return it."""
        self._books[book.number] = book
        return book

    def remove(self, number: int) -> None:
        """Remove the book unless it is lent."""
        if self.find(number).lent_to is not None:
            raise Refused(409, "Lent", f"Book {number} is with a reader and must come back first.")
        del self._books[number]


def build_upstream(library: Library) -> Starlette:
    """Build the web service of a library."""

    def route(path: str, method: str, answer: Callable[[Library, Request], Awaitable[Response]]) -> Route:
        async def handle(request: Request) -> Response:
            return await answer(library, request)

        return Route(path, handle, methods=[method])

    return Starlette(
        routes=[
            route("/opening-hours", "GET", _opening_hours),
            route("/stock-count", "GET", _count_stock),
            route("/books", "GET", _list_books),
            route("/books", "POST", _add_book),
            route("/books/{number}", "GET", _get_book),
            route("/books/{number}", "PUT", _replace_book),
            route("/books/{number}", "DELETE", _remove_book),
            route("/books/{number}/cover", "GET", _get_cover),
            route("/books/{number}/loan", "POST", _lend_book),
            route("/books/{number}/loan", "DELETE", _return_book),
        ],
        exception_handlers={Refused: _explain},
    )


async def _opening_hours(_: Library, __: Request) -> Response:
    return JSONResponse({"days": [{"day": day, "opens": opens, "closes": closes} for day, opens, closes in _HOURS]})


async def _count_stock(library: Library, request: Request) -> Response:
    try:
        seconds = float(request.query_params.get("seconds", "3"))
    except ValueError:
        raise _invalid("seconds must be a number") from None
    if not 0 <= seconds <= _MAX_SECONDS:
        raise _invalid(f"seconds must be from 0 to {_MAX_SECONDS:g}")
    await anyio.sleep(seconds)
    books = library.all()
    lent = sum(book.lent_to is not None for book in books)
    return JSONResponse({"books": len(books), "lent": lent, "seconds": seconds})


async def _list_books(library: Library, request: Request) -> Response:
    author = request.query_params.get("author", "").casefold()
    limit = _whole_number("limit", request.query_params.get("limit", "20"), largest=100)
    found = [book for book in library.all() if author in book.author.casefold()]
    return JSONResponse({"books": [book.shown() for book in found[:limit]]})


async def _add_book(library: Library, request: Request) -> Response:
    title, author, year = _read_book(await _read_object(request, ("title", "author", "year")))
    book = library.add(title=title, author=author, year=year)
    return JSONResponse(book.shown(), status_code=201, headers={"Location": f"/books/{book.number}"})


async def _get_book(library: Library, request: Request) -> Response:
    fields = tuple(request.query_params.getlist("fields")) or _FIELDS
    if unknown := [name for name in fields if name not in _FIELDS]:
        raise _invalid(f"a book has no field {unknown[0]!r}")
    return JSONResponse(library.find(_number(request)).shown(fields))


async def _replace_book(library: Library, request: Request) -> Response:
    found = library.find(_number(request))
    title, author, year = _read_book(await _read_object(request, ("title", "author", "year")))
    return JSONResponse(library.keep(replace(found, title=title, author=author, year=year)).shown())


async def _remove_book(library: Library, request: Request) -> Response:
    library.remove(_number(request))
    return Response(status_code=204)


async def _get_cover(library: Library, request: Request) -> Response:
    number = library.find(_number(request)).number
    hue = number * 67 % 200
    picture = draw_png(48, 64, lambda x, y: (hue, 40, 90) if 4 < x < 44 and 4 < y < 60 else (240, 230, 200 - hue // 4))
    return Response(picture, media_type="image/png")


async def _lend_book(library: Library, request: Request) -> Response:
    found = library.find(_number(request))
    reader = _text(await _read_object(request, ("reader",)), "reader", longest=100)
    if found.lent_to is not None:
        raise Refused(409, "Lent", f"Book {found.number} is with {found.lent_to}.")
    return JSONResponse(library.keep(replace(found, lent_to=reader)).shown())


async def _return_book(library: Library, request: Request) -> Response:
    found = library.find(_number(request))
    if found.lent_to is None:
        raise Refused(409, "Not lent", f"Book {found.number} is on its shelf.")
    return JSONResponse(library.keep(replace(found, lent_to=None)).shown())


async def _explain(_: Request, error: Exception) -> Response:
    refused = error if isinstance(error, Refused) else Refused(500, "Failed", "Something went wrong.")
    problem = {"type": "about:blank", "title": refused.title, "status": refused.status, "detail": refused.detail}
    return JSONResponse(problem, status_code=refused.status, media_type="application/problem+json")


def _invalid(detail: str) -> Refused:
    return Refused(422, "Not valid", detail)


def _number(request: Request) -> int:
    return _whole_number("number", str(request.path_params["number"]), largest=_MAX_NUMBER)


def _whole_number(name: str, text: str, *, largest: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_NUMBER)) else 0
    if not 1 <= number <= largest:
        raise _invalid(f"{name} must be a whole number from 1 to {largest}")
    return number


async def _read_object(request: Request, known: tuple[str, ...]) -> dict[str, object]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _MAX_BODY:
            raise Refused(413, "Too large", "No book needs so many words.")
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise _invalid("the body must be JSON") from None
    if not isinstance(value, dict):
        raise _invalid("the body must be an object")
    body = cast("dict[str, object]", value)
    if unknown := [name for name in body if name not in known]:
        raise _invalid(f"nothing is known of {unknown[0]!r}")
    return body


def _read_book(body: dict[str, object]) -> tuple[str, str, int | None]:
    year = body.get("year")
    if year is not None and (isinstance(year, bool) or not isinstance(year, int) or abs(year) > 3000):
        raise _invalid("year must be a whole number from -3000 to 3000, or null")
    return _text(body, "title", longest=200), _text(body, "author", longest=200), year


def _text(body: dict[str, object], name: str, *, longest: int) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise _invalid(f"{name} must be a text of 1 to {longest} characters")
    return value
