"""Ceilings of a tenant's limits: the maximum of each limit, set only by the operator.

The limit in force is the smaller of the stored limit and its ceiling. So a lowered ceiling applies at once, and a
raised one restores the tenant's stored limit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Final

from gateway.domain.members.markers import About, Bounds, Length, Option, Shape
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import HIGHEST, Count, Limits, Rate
from gateway.errors import BrokenSetting

DEFAULT_CEILINGS: Final = Limits(
    calls_per_second=200.0, burst=400, concurrency=128, sessions=2000, streams=200, primitives=20_000
)
"""Twice the default limits.

200 calls a second are an eighth of what one replica on two cores serves. On a busy machine, a tenant at 400 tripled
another tenant's median latency in a measurement (`python -m benchmarks.fair_share`).
"""

LIMIT_NAMES: Final = tuple(field.name for field in fields(Limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminBounds:
    """Bounds on the actions of the tenant's own admins; null means no bound. The operator is not bounded."""

    keys: Annotated[
        Count | None,
        About("The maximum number of keys of the tenant, including revoked and expired ones; null: no bound."),
        Option(nothing="unbounded"),
    ] = None
    key_lifetime_s: Annotated[
        int | None,
        Bounds(least=60, most=315_360_000),
        Shape.DURATION,
        About("The maximum time until the end of a key, from its creation or change, in seconds; null: no bound."),
        Option(name="key-lifetime", nothing="unbounded"),
    ] = None
    scopes: Annotated[
        tuple[Scope, ...] | None,
        Length(least=1, most=5),
        Shape.DISTINCT,
        About("The scopes that the tenant's admins may grant; null: all scopes of the admin's own key."),
        Option(name="scope", nothing="unbounded"),
    ] = None
    issuers: Annotated[bool, About("True if the tenant's admins may create and change issuers.")] = True


NO_BOUNDS: Final = AdminBounds()
_BY_DEFAULT = Option(nothing="default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The ceilings that the operator set for one tenant; None means the installation's default."""

    calls_per_second: Annotated[
        Rate | None, About("The highest rate of calls per second; null: the default."), _BY_DEFAULT, Shape.KEPT
    ] = None
    burst: Annotated[Count | None, About("The highest burst; null: the default."), _BY_DEFAULT, Shape.KEPT] = None
    concurrency: Annotated[
        Count | None, About("The highest number of concurrent calls; null: the default."), _BY_DEFAULT, Shape.KEPT
    ] = None
    sessions: Annotated[
        Count | None, About("The highest number of open MCP sessions; null: the default."), _BY_DEFAULT, Shape.KEPT
    ] = None
    streams: Annotated[
        Count | None, About("The highest number of open streams; null: the default."), _BY_DEFAULT, Shape.KEPT
    ] = None
    primitives: Annotated[
        Count | None, About("The highest number of primitives; null: the default."), _BY_DEFAULT, Shape.KEPT
    ] = None
    admin_bounds: Annotated[
        AdminBounds, About("Bounds on the actions of the tenant's own admins."), Option(name="admin"), Shape.KEPT
    ] = NO_BOUNDS
    version: int = 1

    def resolve(self, defaults: Limits) -> Limits:
        """Return the ceilings in force, with the installation's default for each unset one."""
        own = {name: value for name in LIMIT_NAMES if (value := getattr(self, name)) is not None}
        return Limits(**(asdict(defaults) | own))


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsInForce:
    """The ceilings of one tenant, and the installation's defaults."""

    own: Ceilings
    defaults: Limits

    @property
    def limits(self) -> Limits:
        """The ceiling of each limit."""
        return self.own.resolve(self.defaults)

    @property
    def defaulted(self) -> tuple[str, ...]:
        """The limits whose ceiling is the installation's default."""
        return tuple(name for name in LIMIT_NAMES if getattr(self.own, name) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsStatus:
    """The ceilings in force."""

    effective: Annotated[Limits, About("The ceiling of each limit, with the installation's defaults.")]
    defaulted: Annotated[tuple[str, ...], About("The limits whose ceiling is the installation's default.")]


def read_ceilings(given: Iterable[str]) -> Limits:
    """Return the installation's default ceilings: `DEFAULT_CEILINGS`, overridden by strings of the form `limit=number`.

    Raises:
        BrokenSetting: a string names no limit, or its value is not a positive number within `HIGHEST`.
    """
    found: dict[str, Any] = asdict(DEFAULT_CEILINGS)
    for text in given:
        name, _, raw = (part.strip() for part in text.partition("="))
        try:
            value = type(found[name])(raw)
        except (KeyError, ValueError):
            value = 0
        if not 0 < value <= HIGHEST:
            names = ", ".join(LIMIT_NAMES)
            raise BrokenSetting(f"GATEWAY_CEILINGS: {text!r} is not limit=number up to {HIGHEST}; limits: {names}")
        found[name] = value
    return Limits(**found)


def least(limits: Limits, ceilings: Limits) -> Limits:
    """Return the limits, each reduced to its ceiling if it is higher."""
    bounds: Mapping[str, float] = asdict(ceilings)
    # guard: limits-below-their-ceilings
    return Limits(**{name: min(value, bounds[name]) for name, value in asdict(limits).items()})
