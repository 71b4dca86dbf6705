"""Models of one singleton: bodies of PUT and PATCH, and the response."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, cast

from pydantic import Field

from gateway.domain.members.markers import Shape
from gateway.kinds.members import STATUS, cached, settable, shown
from gateway.kinds.singleton import S, Singleton
from gateway.web.kinds.annotations import changed_fields, make_model, merged, sent_fields, shown_fields, shown_model
from gateway.web.kinds.kept_members import refuse_losses, sent_paths
from gateway.web.kinds.models import WholeBody
from gateway.web.models import BodyModel, ResponseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonModels(Generic[S]):
    """The models of one singleton, and the object that they describe."""

    kind: Singleton[S]
    wanted: type[BodyModel]
    """The body of a manifest: that of a PUT, without the members that only responses have."""
    whole: type[WholeBody]
    change: type[BodyModel]
    shown: type[ResponseModel]

    def compose(self, body: BodyModel, current: S, initial: S, *, may_remove: bool) -> S:
        """The object that a PUT describes; absent members have the value of `initial`.

        Raises:
            Conflict: it would remove stored members without saying so.
        """
        wanted = self._apply(body, initial)
        members = settable(self.kind.of)
        values = {one.name: getattr(wanted, one.name) for one in members}
        if not may_remove:
            refuse_losses(members, current, values, sent_paths(body))
        composed: S = replace(cast("Any", current), **values)
        return composed

    def revise(self, body: BodyModel, current: S) -> S:
        """The object with the members that a PATCH sent."""
        return self._apply(body, current)

    def show(self, one: S, status: object) -> ResponseModel:
        """The response with the object and its status."""
        values = {each: getattr(one, each) for each in self.shown.model_fields if each != STATUS}
        return self.shown.model_validate(values if status is None else {**values, STATUS: status}, from_attributes=True)

    def _apply(self, body: BodyModel, before: S) -> S:
        hints = {one.name: one.hint for one in settable(self.kind.of)}
        values = {name: merged(getattr(before, name), value, hints[name]) for name, value in body.sent().items()}
        wanted: S = replace(cast("Any", before), **values)
        if self.kind.complete is None:
            return wanted
        return self.kind.complete(before, wanted, sent_paths(body))


@cached
def singleton_models_of(kind: Singleton[S]) -> SingletonModels[S]:
    """Derive the models of a singleton."""
    members = settable(kind.of)
    about = f"{kind.about[:1].upper()}{kind.about[1:]}"
    fields: dict[str, tuple[Any, Any]] = {**shown_fields(members)}
    if kind.status is not None and shown(kind.status):
        state = "State that the gateway sets; requests ignore it."
        fields[STATUS] = (Annotated[shown_model(kind.status), Field(description=state)], ...)
    whole = {**sent_fields(members), **changed_fields([one for one in members if Shape.SETTING in one.marks])}
    is_whole = f"{about}; absent fields have their default."
    return SingletonModels(
        kind=kind,
        wanted=make_model(f"{kind.stem}Manifest", BodyModel, is_whole, whole),
        whole=make_model(f"{kind.stem}Replace", WholeBody, is_whole, whole),
        change=make_model(
            f"{kind.stem}Update", BodyModel, f"{about}; absent fields keep their value.", changed_fields(members)
        ),
        shown=make_model(f"{kind.stem}Shown", ResponseModel, f"{about}.", fields),
    )
