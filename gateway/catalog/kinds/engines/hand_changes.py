"""Changes by hand of objects that a set of manifests owns: drift, for the trail, metrics and webhook endpoints."""

from gateway.catalog.manifests.limits import MAX_DRIFT_EVENTS
from gateway.catalog.transaction import CatalogChange, OpenChanges
from gateway.domain.updates.webhook_endpoints import WebhookEventKind
from gateway.store.kinds import ownership
from gateway.store.notifications import deliveries


async def note_hand_change(opened: OpenChanges, entry: CatalogChange, kind: str, of: str) -> None:
    """Name the owner in the entry of a change that the owner does not make, and report the change.

    Call this within the change, with the kind and id of the object; the id of a singleton is its kind.
    """
    owned = await ownership.get(opened.tenant, opened.db, kind, of)
    if owned is None or owned.owner == opened.owner:
        return
    entry.detail["drift"] = owned.set
    await ownership.forget_secrets(opened.tenant, opened.db, kind, of)
    opened.drifted.append(kind)
    if len(opened.drifted) > MAX_DRIFT_EVENTS:  # guard: drift-events-bounded
        return
    payload = {
        "tenant": opened.tenant,
        "set": owned.set,
        "kind": kind,
        "id": of,
        "name": entry.target,
        "action": entry.action,
        "by": opened.by.caller.name,
    }
    await deliveries.enqueue(opened.tenant, opened.db, WebhookEventKind.CONFIGURATION_DRIFTED, payload)
