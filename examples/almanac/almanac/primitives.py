"""The almanac's primitives: each is a definition, a function and a safety level."""

import json as json_text
from dataclasses import asdict, dataclass
from datetime import date

from gateway.embed import (
    Completing,
    Contents,
    Context,
    ExtraPrompt,
    ExtraResource,
    ExtraResourceTemplate,
    ExtraTool,
    Messages,
    ObjectSchema,
    Result,
    error,
    success,
)

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


DATE: ObjectSchema = {
    "type": "object",
    "properties": {"date": {"type": "string", "format": "date", "description": "Such as 2026-07-28."}},
    "required": ["date"],
    "additionalProperties": False,
}
SPAN: ObjectSchema = {
    "type": "object",
    "properties": {"start": {"type": "string", "format": "date"}, "end": {"type": "string", "format": "date"}},
    "required": ["start", "end"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Month:
    """One month of the year; February with 28 days."""

    name: str
    number: int
    days: int


def weekday_of(day: date) -> str:
    """Return the day of the week."""
    return WEEKDAYS[day.weekday()]


def month_named(name: str) -> Month | None:
    """Return the month of this name; None if there is none."""
    if name not in MONTHS:
        return None
    number = MONTHS.index(name) + 1
    following = date(2023 + number // 12, number % 12 + 1, 1)
    return Month(name, number, (following - date(2023, number, 1)).days)


def read_dates(context: Context, *names: str) -> list[date]:
    """Return the dates in these arguments; none if one is no date, because the gateway does not check formats."""
    try:
        return [date.fromisoformat(context.arguments[name]) for name in names]
    except ValueError:
        return []


INVALID_DATE = error("INVALID_DATE", "A date has the form 2026-07-28.", {})


def describe_weekday(context: Context) -> Result:
    """A synchronous handler, which runs in a thread."""
    dates = read_dates(context, "date")
    return success({"weekday": weekday_of(dates[0])}) if dates else INVALID_DATE


async def count_days(context: Context) -> Result:
    """An async handler, which reports progress and calls another tool with all checks."""
    dates = read_dates(context, "start", "end")
    if not dates:
        return INVALID_DATE
    start, end = dates
    if end < start:
        return error("END_BEFORE_START", "The end is before the start.", {"start": str(start), "end": str(end)})
    await context.progress(1, 2, "counted")
    text_of_day = await context.invoke("weekday_of", {"date": str(end)})
    await context.progress(2, 2, "looked up")
    return success({"days": (end - start).days, "ends_on": text_of_day["structuredContent"]["weekday"]})


def list_months(_: Context) -> str:
    """A resource handler that returns text, in the MIME type of its definition."""
    return json_text.dumps(MONTHS)


def show_month(context: Context) -> Contents:
    """A resource template handler; the variables are in `context.arguments`."""
    month = month_named(context.arguments["name"])
    text = json_text.dumps(None if month is None else asdict(month))
    return Contents(contents=({"uri": context.uri, "mimeType": "application/json", "text": text},))


def suggest_months(completing: Completing) -> list[str]:
    """Complete the name of a month."""
    return [name for name in MONTHS if name.startswith(completing.value.lower())]


def plan_week(context: Context) -> Messages:
    """A prompt handler that returns one message."""
    first = context.arguments.get("first_day", WEEKDAYS[0])
    text = f"Plan a week that begins on {first}. Ask weekday_of before you name a date."
    return Messages(messages=({"role": "user", "content": {"type": "text", "text": text}},))


def suggest_weekdays(completing: Completing) -> list[str]:
    """Complete the name of a weekday."""
    return [day for day in WEEKDAYS if day.lower().startswith(completing.value.lower())]


TOOLS = (
    ExtraTool(
        definition={
            "name": "weekday_of",
            "description": "Returns the day of the week of a date.",
            "inputSchema": DATE,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        },
        handler=describe_weekday,
        safety="safe",
    ),
    ExtraTool(
        definition={
            "name": "days_between",
            "description": "Counts the days from one date to another, and names the weekday of the last one.",
            "inputSchema": SPAN,
        },
        handler=count_days,
        safety="safe",
    ),
)
RESOURCES = (
    ExtraResource(
        definition={"uri": "almanac://months", "name": "months", "mimeType": "application/json"},
        handler=list_months,
        safety="safe",
    ),
    ExtraResourceTemplate(
        definition={"uriTemplate": "almanac://months/{name}", "name": "month", "mimeType": "application/json"},
        handler=show_month,
        complete=suggest_months,
        safety="safe",
    ),
)
PROMPTS = (
    ExtraPrompt(
        definition={
            "name": "plan_week",
            "description": "Plans a week.",
            "arguments": [{"name": "first_day", "description": "The weekday on which it begins."}],
        },
        handler=plan_week,
        complete=suggest_weekdays,
        safety="safe",
    ),
)
