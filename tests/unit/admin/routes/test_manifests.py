"""Validation of the objects of an application."""

from gateway.admin.requests.manifests import ObjectSent
from gateway.admin.routes.manifests import read_objects
from gateway.catalog.transaction import CatalogOptions
from gateway.domain.tenancy.principals import Operator
from tests.support.loop_work import loop_work


async def test_objects_are_validated_in_steps() -> None:
    """Ours: the event loop runs others between the validations of two objects (CFG-1)."""
    objects = [ObjectSent(kind="profile", name=f"p{number}") for number in range(50)]
    async with loop_work() as work:
        assert len(await read_objects(objects, Operator(), CatalogOptions())) == len(objects)
    assert work.iterations >= len(objects)
