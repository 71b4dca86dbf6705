"""Tools of a program beside those of an OpenAPI document: `python -m examples.librarian`."""

from pathlib import Path
from typing import Literal

from gateway.embed import Context, Gateway

gateway = Gateway()
gateway.import_openapi("library", Path(__file__).parent / "library" / "openapi.yaml", operations=["GET /books*"])


@gateway.tool(safety="safe")
def estimate(pages: int, pace: Literal["slow", "fast"] = "slow") -> float:
    """Estimates the hours that a reader needs for a book."""
    return pages / (30 if pace == "slow" else 60)


@gateway.tool(safety="safe")
async def compare(numbers: list[int], context: Context) -> dict[str, int]:
    """Returns the years of books, by title."""
    years: dict[str, int] = {}
    for done, number in enumerate(numbers):
        await context.log("info", f"looking up book {number}")
        book = (await context.invoke("getBook", {"number": number}))["structuredContent"]
        years[book["title"]] = book["year"]
        await context.progress(done + 1, len(numbers))
    return years


@gateway.resource("shelves://{letter}")
def find_place(letter: str) -> str:
    """The shelf of the authors with this initial."""
    return f"Shelf {ord(letter.upper()) - 64}, from the left."


@gateway.prompt
def recommend(topic: str, mood: str = "curious") -> str:
    """Asks for a book."""
    return f"Recommend a book about {topic} to a {mood} reader."


if __name__ == "__main__":
    gateway.run()
