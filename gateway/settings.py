"""Settings of the server: each `GATEWAY_*` variable with its default and meaning. Secrets can be read from files."""

import difflib
import ipaddress
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from gateway.errors import BrokenSetting

PREFIX = "GATEWAY_"
CLIENT_VARIABLES = frozenset({"GATEWAY_URL", "GATEWAY_TENANT", "GATEWAY_KEY", "GATEWAY_CONTEXT"})
"""Variables that configure the command line as a client; the server ignores them."""

SECRETS = (
    "database_url",
    "migration_database_url",
    "redis_url",
    "secret_keys",
    "operator_key",
    "metrics_key",
    "audit_heads_token",
    "vault_url",
)
"""Settings that can also be read from a file; the variable with the suffix `_FILE` contains its path."""

FILE_SUFFIX = "_FILE"

_MINIMUM_KEY_LENGTH = 32
_NameList = Annotated[tuple[str, ...], NoDecode]


def url_of(host: str, port: int) -> str:
    """Return the URL of a listener."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Settings(BaseSettings):
    """Configuration of one gateway process, read from the environment."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")
    _files: Mapping[str, Path] = PrivateAttr(default_factory=dict[str, Path])

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 selects a free port.")
    admin_host: str | None = Field(
        None, description="Address of the admin API's own listener, with `GATEWAY_ADMIN_PORT`; default: 127.0.0.1."
    )
    admin_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port of a separate listener for the admin API and `/metrics`; default: they share `GATEWAY_PORT`.",
    )
    admin_rate: float = Field(
        50.0, gt=0, description="Admin requests per second for each key and replica; the burst is four times the rate."
    )
    auth_failure_rate: float = Field(
        20.0,
        gt=0,
        description="Failed authentications, and requests for pages of people, per second for each client address and "
        "replica; the burst is 20 times the rate.",
    )
    public_url: str | None = Field(None, description="Public URL of the gateway, if it differs from host and port.")
    allowed_hosts: _NameList = Field(
        (), description="Further accepted values of the Host header, comma-separated; `*.example.com` is possible."
    )
    allowed_origins: _NameList = Field((), description="Accepted origins of browser pages, comma-separated.")
    data_dir: Path = Field(Path(".gateway"), description="Folder of the embedded servers' data and of generated keys.")
    database_url: SecretStr | None = Field(
        None, description="URL of PostgreSQL; default: an embedded server is started."
    )
    migration_database_url: SecretStr | None = Field(
        None, description="PostgreSQL login that owns the schema; default: the database URL."
    )
    database_pool: int = Field(8, ge=1, le=100, description="Maximum number of PostgreSQL connections of a replica.")
    redis_url: SecretStr | None = Field(
        None, description="URL of Redis, `redis+sentinel://` for Sentinels; default: an embedded server is started."
    )
    secret_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Keys that encrypt stored secrets, comma-separated; the first one encrypts, all decrypt."
    )
    secret_folder: Path | None = Field(
        None, description="Folder for credentials that refer to files: one subfolder per tenant, named after its slug."
    )
    secret_variables: _NameList = Field(
        (), description="Variables to which the operator's credentials may refer, comma-separated."
    )
    vault_url: SecretStr | None = Field(
        None,
        description="Vault-compatible server for references of credentials, with the sign-in and the path below which"
        " each tenant has its own: `https://kubernetes:ROLE@HOST:PORT/MOUNT/PATH`.",
    )
    operator_key: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="The operator's API keys, comma-separated, each of at least 32 characters; all are accepted."
    )
    operator_sign_in: Literal["any", "tokens"] = Field(
        "any",
        description="`tokens`: keys of operators, this setting's too, are refused by the admin API as soon as a grant "
        "makes people or workloads of an issuer of the installation administrators. `any`: keys are accepted.",
    )
    metrics_key: SecretStr | None = Field(
        None, description="Key that may read `/metrics` and nothing else, at least 32 characters."
    )
    trusted_proxies: _NameList = Field(
        (), description="Addresses and networks of proxies whose `X-Forwarded-For` is trusted, comma-separated."
    )
    egress_allow: _NameList = Field(
        (),
        description="Private `host:port` upstreams and `unix:/path` that every tenant may reach, comma-separated; "
        "for one tenant: `gateway tenant egress`.",
    )
    reference_hosts: _NameList = Field(
        (),
        description="Hosts from which an import by URL also fetches the files that its document refers to by relative "
        "paths, comma-separated; none by default.",
    )
    audit_heads: _NameList = Field(
        (),
        description="Further stores of audit heads: absolute paths of files, which are appended to, and https URLs; "
        "comma-separated.",
    )
    audit_folder: Path | None = Field(
        None, description="Folder for audit sinks of the kind `file`; without it, this replica writes none."
    )
    audit_retention_min_days: int = Field(
        30, ge=1, le=36_500, description="Shortest retention of audit entries that a tenant can set, in days."
    )
    refresh_min_s: int = Field(
        300, ge=1, le=86_400, description="Shortest interval between two refreshes of a source, in seconds."
    )
    upstream_timeout_max_s: float = Field(
        300.0, ge=1, le=3600, description="Longest `timeout_s` of a source or an `http` handler, in seconds."
    )
    source_versions: int = Field(
        10, ge=1, le=1000, description="Versions of a source's document that are kept, the active one included."
    )
    audit_heads_token: SecretStr | None = Field(None, description="Bearer token for the https URLs of audit heads.")
    extra_tools: _NameList = Field((), description="Tools of Python objects named `module:attribute`, comma-separated.")
    extra_resources: _NameList = Field(
        (), description="Resources and resource templates of Python objects named `module:attribute`, comma-separated."
    )
    extra_prompts: _NameList = Field(
        (), description="Prompts of Python objects named `module:attribute`, comma-separated."
    )
    ceilings: _NameList = Field(
        (),
        description="Default ceilings of a tenant's limits, `limit=number`, comma-separated; for one tenant: "
        "`gateway ceilings`.",
    )
    tenant_policy: _NameList = Field(
        (),
        description="Decisions for the levels in new tenants, `level=decision`, comma-separated; default: safe=allow,"
        " moderate=confirm, dangerous=approve.",
    )
    live_commands: bool = Field(
        False,
        description="Permits live sources of the kind `command`: programs that the gateway starts with its own rights.",
    )
    list_page_items: int = Field(
        1000,
        ge=1,
        le=10_000,
        description="Primitives on one page of a list, with 4 KiB for each; some clients read the first page alone.",
    )
    session_idle_s: int = Field(1800, ge=1, description="Seconds after which an unused MCP session ends.")
    notice_s: float = Field(
        0.0, ge=0, description="Seconds between failing `/readyz` on SIGTERM and refusing connections."
    )
    drain_s: float = Field(10.0, ge=0, description="Seconds that running calls then have to finish.")
    trace_join: bool = Field(
        True, description="Continues the trace of the client (`traceparent`); otherwise each message begins a trace."
    )
    trace_forward: bool = Field(False, description="Sends the trace to upstreams (`traceparent`).")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum severity of log lines; `debug` adds one line for each call."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto",
        description="Format of log lines; `auto` writes readable lines to a terminal, otherwise JSON. With `json`, "
        "`serve` and `migrate` write only JSON lines to both standard streams.",
    )

    @field_validator(
        "allowed_hosts",
        "allowed_origins",
        "audit_heads",
        "ceilings",
        "reference_hosts",
        "egress_allow",
        "operator_key",
        "secret_keys",
        "secret_variables",
        "tenant_policy",
        "trusted_proxies",
        "extra_tools",
        "extra_resources",
        "extra_prompts",
        mode="before",
    )
    @classmethod
    def split_list(cls, value: object) -> object:
        """Split a string at commas and line ends; blank parts are dropped."""
        if not isinstance(value, str):
            return value
        return tuple(part for raw in value.replace("\n", ",").split(",") if (part := raw.strip()))

    @field_validator("trusted_proxies")
    @classmethod
    def check_trusted_proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Accept only addresses and networks, because a host name could later resolve to another address."""
        for network in value:
            ipaddress.ip_network(network, strict=False)
        return value

    @field_validator("audit_heads")
    @classmethod
    def check_audit_heads(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Accept only absolute paths, and https URLs without a user name."""
        for target in value:
            parts = urlsplit(target)
            is_url = parts.scheme == "https" and bool(parts.hostname) and parts.username is None
            if not is_url and not target.startswith("/"):
                raise ValueError("each must be an absolute path or an https URL without user and password")
        return value

    @field_validator("metrics_key")
    @classmethod
    def check_key(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuse a key of fewer than 32 characters, which could be guessed."""
        if value is not None and len(value.get_secret_value()) < _MINIMUM_KEY_LENGTH:
            raise ValueError(f"must have at least {_MINIMUM_KEY_LENGTH} characters")
        return value

    @field_validator("operator_key", "secret_keys")
    @classmethod
    def check_keys(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        """Refuse keys of fewer than 32 characters, which could be guessed."""
        if any(len(key.get_secret_value()) < _MINIMUM_KEY_LENGTH for key in value):
            raise ValueError(f"every key must have at least {_MINIMUM_KEY_LENGTH} characters; commas separate keys")
        return value

    @field_validator("public_url")
    @classmethod
    def check_public_url(cls, value: str | None) -> str | None:
        """Accept an http or https URL with a host and without query and fragment; drop slashes at its end."""
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must be an http or https URL without query and fragment")
        return value.rstrip("/")

    def check_exposure(self) -> None:
        """Check before a start that generated keys are used only on loopback addresses.

        Raises:
            BrokenSetting: a host is not loopback and a key is not configured; a database is configured without secret
                keys; or the admin API's own listener has a host without a port, or the port of the MCP listener.
        """
        self._check_admin_listener()
        for host in self._hosts():
            if self.is_generating_keys and not _is_loopback(host):  # guard: generated-keys-stay-here
                missing = [name for name, value in self._key_variables() if not value]
                raise BrokenSetting(f"listening on {host} needs {' and '.join(missing)} to be set")
        if self.database_url is not None and not self.secret_keys:
            raise BrokenSetting("a configured database needs GATEWAY_SECRET_KEYS to be set")

    def with_files(self, files: Mapping[str, Path]) -> Self:
        """Note the files from which secrets were read, by setting."""
        self._files = files
        return self

    def file_of(self, name: str) -> Path | None:
        """The file from which a secret was read; None if the environment or the program gave it."""
        return self._files.get(name)

    def reread(self, name: str) -> str:
        """Read a secret from its file again, and return its value; that of several keys is comma-separated.

        Raises:
            BrokenSetting: the file cannot be read, or its value is not allowed.
        """
        text = _read_file(name, self._files[name])
        try:
            value: SecretStr | tuple[SecretStr, ...] = getattr(Settings.model_validate({name: text}), name)
        except ValidationError as error:
            raise BrokenSetting(_first_fault(error)) from None
        return ",".join(key.get_secret_value() for key in (value if isinstance(value, tuple) else (value,)))

    @property
    def is_generating_keys(self) -> bool:
        """True if the operator key or the secret keys are not configured, so that generated keys are used."""
        return not all(value for _, value in self._key_variables())

    @property
    def is_for_one_person(self) -> bool:
        """True if only programs on this machine reach the gateway: it has no other address and no configured server."""
        is_shared = self.database_url is not None or self.redis_url is not None or self.public_url is not None
        return not is_shared and all(_is_loopback(host) for host in self._hosts())

    @property
    def admin_address(self) -> str:
        """Address of the admin API's own listener."""
        return self.admin_host or "127.0.0.1"

    @property
    def mcp_base_url(self) -> str | None:
        """Base URL of MCP if it is known to differ from that of the admin API."""
        if self.public_url is not None or self.admin_port is None:
            return self.public_url
        return url_of(self.host, self.port)

    @property
    def log_as_json(self) -> bool:
        """True if logs are JSON lines; `auto` writes readable lines to a terminal."""
        return self.log_format == "json" or (self.log_format == "auto" and not os.isatty(2))

    def _hosts(self) -> Iterable[str]:
        return (self.host,) if self.admin_port is None else (self.host, self.admin_address)  # guard: admin-door-keys

    def _check_admin_listener(self) -> None:
        if self.admin_port is None and self.admin_host is not None:  # guard: admin-door-half
            raise BrokenSetting("GATEWAY_ADMIN_HOST: the admin API has no listener of its own; set GATEWAY_ADMIN_PORT")
        if self.admin_port == self.port and self.port:
            raise BrokenSetting(f"GATEWAY_ADMIN_PORT: {self.port} is the port of MCP; choose another one")

    def _key_variables(self) -> Iterable[tuple[str, object]]:
        return (("GATEWAY_SECRET_KEYS", self.secret_keys), ("GATEWAY_OPERATOR_KEY", self.operator_key))


def load_settings(**overrides: object) -> Settings:
    """Load the settings of this process; overrides take precedence over the environment.

    Raises:
        BrokenSetting: a variable is unknown or its value is not allowed, or its file cannot be read. The message names
            the variable.
    """
    _check_names(os.environ)
    files = _find_files(os.environ)
    given = {name: _read_file(name, path) for name, path in files.items()}
    try:
        settings = Settings.model_validate({**given, **overrides})
    except ValidationError as error:
        raise BrokenSetting(_first_fault(error)) from None
    return settings.with_files({name: path for name, path in files.items() if name not in overrides})


def _find_files(environ: Mapping[str, str]) -> dict[str, Path]:
    """The files that the `…_FILE` variables name, by setting."""
    found: dict[str, Path] = {}
    for name in SECRETS:
        variable = PREFIX + name.upper()
        path = environ.get(variable + FILE_SUFFIX)
        if path and environ.get(variable):
            raise BrokenSetting(f"{variable} and {variable}{FILE_SUFFIX} are both set; set one of them")
        if path:
            found[name] = Path(path)
    return found


def _read_file(name: str, path: Path) -> str:
    variable = PREFIX + name.upper() + FILE_SUFFIX
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise BrokenSetting(f"{variable}: {path} cannot be read: {reason}") from None
    if not text:
        raise BrokenSetting(f"{variable}: {path} is empty")
    return text


def _check_names(names: Iterable[str]) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | CLIENT_VARIABLES
    known |= {PREFIX + name.upper() + FILE_SUFFIX for name in SECRETS}
    for name in names:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise BrokenSetting(f"unknown variable {name}{hint}")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    reason = fault["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{str(fault['loc'][0]).upper()}: {reason}" if fault["loc"] else reason


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
