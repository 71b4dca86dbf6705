"""The singletons of each tenant, with their special functions."""

from collections.abc import Sequence
from typing import Any

from gateway.catalog.egress import normalise_egress
from gateway.catalog.kinds.single_object import SingleObject
from gateway.kinds import singletons as kinds
from gateway.store.kinds import singletons as rows

EGRESS = SingleObject(kind=kinds.EGRESS, row=rows.EGRESS, normalise=normalise_egress)

SINGLE_OBJECTS: Sequence[SingleObject[Any]] = (EGRESS,)
