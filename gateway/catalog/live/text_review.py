"""Suspicious texts in the definitions of live sources: the same findings as an import has."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.catalog.live.limits import MAX_FINDINGS, REVIEW_CPU_S
from gateway.catalog.live.remote_names import Place
from gateway.domain.live_sources import LivePrimitive
from gateway.domain.primitives import Family
from gateway.domain.text_search.look_alikes import find_alike
from gateway.domain.updates.source_changes import TextFinding, look_alike
from gateway.openapi.review.text_findings import find_in_definitions


def find_suspicious(
    primitives: Sequence[LivePrimitive], *, cpu_time_s: float = REVIEW_CPU_S
) -> tuple[Mapping[Place, tuple[TextFinding, ...]], Sequence[str]]:
    """Return the findings on each definition, and a notice if some definitions were not searched."""
    found: dict[Place, tuple[TextFinding, ...]] = {}
    places = {f"{one.family} {one.name}": (one.family, one.remote) for one in primitives}
    names = {one.name: (one.family, one.remote) for one in primitives if one.family is Family.TOOL}
    for name, other in find_alike(names):
        found[names[name]] = (replace(look_alike(name, other), tool=None),)
    began, count = time.thread_time(), len(found)
    texts = {f"{one.family} {one.name}": one.definition for one in primitives}
    for key, finding in find_in_definitions(texts):
        place = places[key]
        found[place] = (*found.get(place, ()), replace(finding, tool=None))
        count += 1
        if count >= MAX_FINDINGS:  # guard: live-finding-count
            return found, [f"the definitions have more than {MAX_FINDINGS - 1} suspicious texts; others are not shown"]
        if time.thread_time() - began > cpu_time_s:
            return found, ["the search for suspicious texts takes too long; some definitions were not searched"]
    return found, []
