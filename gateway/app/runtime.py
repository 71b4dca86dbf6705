"""Runtime of a replica between its APIs and its infrastructure: credentials, snapshots, connections, calls."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

from gateway.app.infrastructure import Infrastructure
from gateway.app.key_lookup import KeyLookup
from gateway.app.live_sources import LiveParts, build_live_parts
from gateway.app.pools import Pool
from gateway.app.python.registrations import Registrations
from gateway.calls.approval import ApprovalStation
from gateway.calls.arguments.recorded_arguments import ArgumentRecorder
from gateway.calls.guardrails.chain import Guardrails
from gateway.calls.guardrails.http_hook import HookClient
from gateway.calls.pipeline import CallPipeline
from gateway.calls.result_rendering import ResultRenderer
from gateway.calls.safeguards import Safeguards
from gateway.catalog.egress import StoredAllowLists
from gateway.catalog.identity.client_secrets import open_introspection_secret
from gateway.catalog.snapshots.credential_cache import CredentialCache
from gateway.catalog.snapshots.input_schemas import StoredInputSchemas
from gateway.catalog.snapshots.outline_cache import OutlineCache
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.catalog.transaction import CatalogContext, CatalogOptions
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.keys import PEPPER_PURPOSE
from gateway.domain.tenancy.policy import Limits
from gateway.handlers.api_query import Queries
from gateway.handlers.binding import Binder
from gateway.handlers.factory import HandlerDependencies
from gateway.handlers.response_body.result_processes import ResultProcesses
from gateway.handlers.result_reader import ResultReader
from gateway.identity.authenticator import Authenticator
from gateway.identity.dpop import ProofChecks
from gateway.identity.failure_limit import FailureLimit
from gateway.identity.introspection import Introspection
from gateway.identity.issued_tokens import TOKEN_PURPOSE, IssuedTokens
from gateway.identity.key_digests import KeyDigests
from gateway.identity.key_uses import KeyUseLog
from gateway.identity.limits import BATCH_INTERVAL_S
from gateway.identity.oauth.account_tokens import LINK_PURPOSE, AccountLinks, StoredAccountTokens
from gateway.identity.oauth.provider_checks import ProviderChecks
from gateway.identity.oauth.relying_party import RelyingParty
from gateway.identity.oauth.subject_tokens import SubjectTokens
from gateway.identity.operators import OperatorDirectory
from gateway.identity.own_audiences import OwnAudiences
from gateway.identity.people import IssuerDirectory, People, TokenVerifiers
from gateway.protocol.sessions.orphaned_sessions import OrphanedSessions
from gateway.redis.caches.oauth_tokens import SharedTokens
from gateway.redis.caches.single_use import SingleUseIds
from gateway.redis.limits.call_limiter import CallLimiter
from gateway.redis.sessions.stores import SessionStores, session_stores
from gateway.registry.connections.connections import Connections
from gateway.registry.cursors import Cursors
from gateway.registry.paging import PageLimits
from gateway.registry.views import ViewCache
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics
from gateway.upstream.auth.assertions import AssertionSigner
from gateway.upstream.auth.delegation import Delegations
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.auth.signing_keys import SigningKeys
from gateway.web.providers.open_providers import OpenProviders


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The components that cache tenants' state or serve their requests."""

    snapshots: Snapshots
    secrets: CredentialCache
    views: ViewCache
    credentials: Authenticator
    operators: OperatorDirectory
    key_uses: KeyUseLog
    connections: Connections
    calls: CallPipeline
    approvals: ApprovalStation
    limiter: CallLimiter
    stores: SessionStores
    orphans: OrphanedSessions
    live: LiveParts
    providers: OpenProviders
    signer: AssertionSigner
    people: People
    processes: ResultProcesses

    @property
    def pools(self) -> Sequence[Pool]:
        """The bounded pools of calls, for the metrics."""
        return (self.processes.slot_pool, self.calls.check_pool)

    @property
    def parts(self) -> Sequence[AbstractAsyncContextManager[object]]:
        """The components that run while the application serves."""
        return (*self.live.parts, self.calls.check_processes, self.processes.processes, self.key_uses)


def build_runtime(
    infrastructure: Infrastructure,
    operator_key: ConfiguredSecret,
    code: Registrations,
    metrics: Metrics,
    *,
    settings: Settings,
    ceilings: Limits,
) -> Runtime:
    """Build the runtime of a replica; its caches are empty."""
    snapshots = Snapshots(infrastructure.store, code=code, ceilings=ceilings)
    infrastructure.upstream.set_allow_lists(StoredAllowLists(infrastructure.store, snapshots))
    secrets = CredentialCache(infrastructure.store, infrastructure.cipher, infrastructure.secret_stores)
    people = _build_people(infrastructure, settings)
    tokens, signer, delegations = _build_identities(infrastructure, settings, people)
    cursors = Cursors(*infrastructure.cipher.derive_all("cursors"))
    queries = Queries(OutlineCache(infrastructure.store), cursors, StoredInputSchemas(infrastructure.store))
    spawn = infrastructure.tasks.spawn
    stores = session_stores(infrastructure.bus, spawn=spawn, idle_s=settings.session_idle_s)
    live = build_live_parts(infrastructure, secrets, delegations, stores)
    processes, pages = ResultProcesses(), PageLimits.of(settings.list_page_items)
    renderer = ResultRenderer(stores.overflow, processes)
    results = ResultReader(stores.overflow, infrastructure.upstream.room, processes)
    dependencies = HandlerDependencies(code, tokens, queries, live.requests, delegations, results, processes)
    views = ViewCache(Binder(infrastructure.upstream, secrets, Validators(), dependencies), code=code, limits=pages)
    credentials, key_uses = _build_authenticator(infrastructure, operator_key, settings, people)
    orphans = OrphanedSessions(stores.sessions, credentials.has_ended, spawn=spawn)
    limiter = CallLimiter(infrastructure.bus, spawn=spawn)
    guardrails = Guardrails(infrastructure.refusals, metrics, HookClient(infrastructure.upstream, secrets))
    connections = Connections(snapshots, views, cursors, still_valid=credentials.still_valid, dismissed=orphans.check)
    approvals = ApprovalStation(_call_catalog(infrastructure, settings), spawn=spawn, attach=connections.attach)
    safeguards = Safeguards(approvals, guardrails, ArgumentRecorder(infrastructure.cipher.derive))
    return Runtime(
        snapshots=snapshots,
        secrets=secrets,
        views=views,
        credentials=credentials,
        operators=_build_operators(infrastructure, settings),
        key_uses=key_uses,
        connections=connections,
        calls=CallPipeline(limiter, infrastructure.refusals, renderer, metrics, safeguards=safeguards),
        approvals=approvals,
        limiter=limiter,
        stores=stores,
        orphans=orphans,
        live=live,
        providers=OpenProviders(credentials),
        signer=signer,
        people=people,
        processes=processes,
    )


def _build_operators(infrastructure: Infrastructure, settings: Settings) -> OperatorDirectory:
    find = KeyLookup(infrastructure.store).find_operators
    return OperatorDirectory(find, tokens_only=settings.operator_sign_in == "tokens")


def _build_identities(
    infrastructure: Infrastructure, settings: Settings, people: People
) -> tuple[Tokens, AssertionSigner, Delegations]:
    cipher, catalog = infrastructure.cipher, _call_catalog(infrastructure, settings)
    checks = ProviderChecks(catalog, RelyingParty(infrastructure.upstream, people.keys))
    tokens = Tokens(infrastructure.upstream, SharedTokens(infrastructure.bus, secret=cipher.derive("access tokens")))
    signer = AssertionSigner(cipher.derive_all, public_url=settings.public_url)
    subjects = SubjectTokens(catalog, people.directory, checks).find
    links = AccountLinks(cipher.derive(LINK_PURPOSE), public_url=settings.public_url)
    accounts = StoredAccountTokens(catalog, links)
    own_audiences = OwnAudiences(people.directory, people.introspection, public_url=settings.public_url)
    return tokens, signer, Delegations(tokens, signer, subjects, accounts, own_audiences=own_audiences)


def _build_people(infrastructure: Infrastructure, settings: Settings) -> People:
    lookup, used = KeyLookup(infrastructure.store), SingleUseIds(infrastructure.bus)

    async def use_once(tenant: TenantId, nonce: str, for_s: int) -> bool:
        return await used.use(tenant, nonce, for_s=for_s)

    return People(
        IssuerDirectory(lookup.find_issuers, interval_s=BATCH_INTERVAL_S),
        TokenVerifiers(
            infrastructure.key_sets,
            IssuedTokens(SigningKeys(infrastructure.cipher.derive_all(TOKEN_PURPOSE))),
            Introspection(infrastructure.upstream, partial(_open_introspection, infrastructure, settings)),
            ProofChecks(use_once),
        ),
        lookup,
        public_url=settings.public_url,
        refusals=infrastructure.refusals,
    )


async def _open_introspection(
    infrastructure: Infrastructure, settings: Settings, tenant: TenantId, issuer: Issuer
) -> str:
    return await open_introspection_secret(tenant, _call_catalog(infrastructure, settings), issuer)


def _build_authenticator(
    infrastructure: Infrastructure, operator_key: ConfiguredSecret, settings: Settings, people: People
) -> tuple[Authenticator, KeyUseLog]:
    lookup = KeyLookup(infrastructure.store)
    uses = KeyUseLog(lookup.note_uses)
    credentials = Authenticator(
        lookup,
        digests=KeyDigests(infrastructure.cipher.derive_named(PEPPER_PURPOSE), uses.note),
        operator_key=operator_key,
        failures=FailureLimit(settings.auth_failure_rate),
        refusals=infrastructure.refusals,
        people=people,
    )
    return credentials, uses


def _call_catalog(infrastructure: Infrastructure, settings: Settings) -> CatalogContext:
    """Return the catalog context for changes by calls; their events need no other subscribers at the publisher."""
    return CatalogContext(
        store=infrastructure.store,
        sealer=infrastructure.cipher,
        upstream=infrastructure.upstream,
        publish=infrastructure.bus.publish,
        chain_key=infrastructure.cipher.derive("audit"),
        secret_stores=infrastructure.secret_stores,
        audit=infrastructure.audit.write,
        settle=infrastructure.refusals.settle,
        options=CatalogOptions(public_url=settings.public_url),
    )
