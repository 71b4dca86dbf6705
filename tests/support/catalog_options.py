"""A catalog with other settings of the operator."""

from dataclasses import replace
from typing import Any

from gateway.catalog.transaction import CatalogContext


def with_options(catalog: CatalogContext, **options: Any) -> CatalogContext:
    """The same catalog with these options."""
    return replace(catalog, options=replace(catalog.options, **options))
