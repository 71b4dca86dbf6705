"""docker-compose.yml: valid, hardened, and agreeing with the gateway, with Caddy and with `.env.example`."""

import importlib.resources
import json
import re
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway.app.server.limits import MAX_CONNECTIONS
from gateway.calls.arguments import costly_validation as dear_checks
from gateway.calls.arguments.costly_validation import CheckLimits
from gateway.catalog.doctor.environment_checks import check_disk
from gateway.catalog.sources.worker_pool import CONCURRENT_WORKERS, WorkerLimits
from gateway.domain.findings import Verdict
from gateway.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tests.deploy.compose import FILE, ROOT, read_compose
from tests.images import read_pins

REPLICAS = ("gateway-a", "gateway-b")
ONCE = ("migrate", "welcome")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as Compose reads it where nothing is configured."""
    return read_compose()


def test_the_file_matches_the_compose_specification(compose: dict[str, Any]) -> None:
    """Ours: Compose will read it."""
    schemas = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema: dict[str, Any] = json.loads((schemas / "compose-spec.json").read_text())
    validator = jsonschema_rs.validator_for(schema, offline=True)

    assert [error.message for error in validator.iter_errors(compose)] == []
    broken = read_compose()
    broken["services"]["caddy"]["imgae"] = "caddy"
    assert not validator.is_valid(broken), "the schema is a check that can fail"


def test_every_service_is_bounded_restarted_and_kept_from_new_privileges() -> None:
    """Ours: a service that runs wild takes neither the machine nor another's rights."""
    for name, service in read_compose()["services"].items():
        limits = service["deploy"]["resources"]["limits"]
        assert {"cpus", "memory"} <= set(limits), name
        assert service["restart"] == ("no" if name in ONCE else "unless-stopped"), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name
        assert re.search(r":[\w.${-]+", service["image"]), f"{name}: an image without a tag is another one tomorrow"


def test_the_doctor_is_content_with_the_room_that_replicas_have(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: `gateway doctor` finds no fault in the file that we ship (SRV-6)."""
    for name in REPLICAS:
        [size] = [re.fullmatch(r"/tmp:size=(\d+)m,.*", place) for place in compose["services"][name]["tmpfs"]]
        assert size is not None
        free = int(size[1]) << 20

        def usage(_: Path, free: int = free) -> SimpleNamespace:
            return SimpleNamespace(free=free)

        monkeypatch.setattr("shutil.disk_usage", usage)
        assert check_disk(Path("/tmp"), is_embedded=False).status is Verdict.OK


def test_every_service_has_a_root_it_cannot_write_and_only_the_capabilities_it_needs(compose: dict[str, Any]) -> None:
    """Ours: an attacker of PostgreSQL, Redis or Caddy finds nothing to write to and hardly a right (ISO-6)."""
    becoming = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}
    allowed = {"postgres": becoming, "redis": becoming, "caddy": {"NET_BIND_SERVICE"}}
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert set(service.get("cap_add", [])) == allowed.get(name, set()), name
        assert service["read_only"] is True, name
        assert any(place.partition(":")[0] == "/tmp" for place in service["tmpfs"]), name


def test_the_admin_api_has_a_port_that_nothing_outside_reaches(compose: dict[str, Any]) -> None:
    """Ours: only MCP is exposed by default; one file more opens the admin API to this machine alone (ISO-6)."""
    for name in REPLICAS:
        environment = compose["services"][name]["environment"]
        assert (environment["GATEWAY_ADMIN_HOST"], environment["GATEWAY_ADMIN_PORT"]) == ("0.0.0.0", "8081")
        assert "ports" not in compose["services"][name]
    assert compose["services"]["welcome"]["environment"]["GATEWAY_URL"] == "http://gateway-a:8081"
    caddyfile = (ROOT / "deploy/caddy/Caddyfile").read_text()
    assert "@inside path /metrics /admin /admin/*\n\trespond @inside 404" in caddyfile
    assert "8081" not in caddyfile
    opened = yaml.safe_load((ROOT / "deploy/compose/admin.yml").read_text())
    assert opened == {"services": {"gateway-a": {"ports": ["127.0.0.1:${ADMIN_PORT:-8081}:8081"]}}}


def test_the_scrape_reads_where_the_numbers_are(compose: dict[str, Any]) -> None:
    """Ours: Prometheus asks every replica at its admin port."""
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())["scrape_configs"][0]
    port = compose["services"]["gateway-a"]["environment"]["GATEWAY_ADMIN_PORT"]

    assert scrape["static_configs"][0]["targets"] == [f"{name}:{port}" for name in REPLICAS]


def test_every_image_is_named_in_one_place(compose: dict[str, Any]) -> None:
    """Ours: a release names its images by digest in `deploy/images.env`, whose tags are those of the files."""
    pins = read_pins(ROOT / "deploy/images.env")
    named = {
        f"{name.upper()}_IMAGE": service["image"]
        for name, service in compose["services"].items()
        if service["image"] != "mcp-gateway:local"
    }
    named["PYTHON_IMAGE"] = compose["services"]["migrate"]["build"]["args"]["PYTHON_IMAGE"]

    assert {name: pin.partition("@")[0] for name, pin in pins.items()} == named
    digest = f"sha256:{'0' * 64}"
    pinned = read_compose(**{name: f"{tag}@{digest}" for name, tag in named.items()})
    assert pinned["services"]["redis"]["image"].endswith(digest)
    assert pinned["services"]["migrate"]["build"]["args"]["PYTHON_IMAGE"].endswith(digest)


def test_replicas_run_unprivileged_on_a_read_only_root(compose: dict[str, Any]) -> None:
    """Ours: promises of the image hold in the engine, too."""
    for name in (*REPLICAS, *ONCE):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["user"] == "10001:10001"


def test_only_caddy_has_published_ports(compose: dict[str, Any]) -> None:
    """Ours: PostgreSQL and Redis are reachable by replicas only, replicas through TLS only."""
    with_ports = {name for name, service in compose["services"].items() if "ports" in service}
    inside = {name for name, service in compose["services"].items() if service["networks"] == ["inside"]}

    assert with_ports == {"caddy"}
    assert inside == {"postgres", "redis", "migrate"}
    assert compose["networks"]["inside"]["internal"] is True


def test_no_secret_is_in_the_environment(compose: dict[str, Any]) -> None:
    """Ours: secrets are files; `docker inspect` shows none (TEN-4)."""
    for name, service in compose["services"].items():
        for variable in service.get("environment", {}):
            is_secret = any(variable == PREFIX + secret.upper() for secret in SECRETS) or "PASSWORD" in variable
            assert not is_secret or variable.endswith("_FILE"), (name, variable)


def test_every_file_that_a_variable_names_is_mounted(compose: dict[str, Any]) -> None:
    """Ours: a container finds the configured secrets, and has no others."""
    for name, service in compose["services"].items():
        named = {
            value.removeprefix("/run/secrets/")
            for variable, value in service.get("environment", {}).items()
            if variable.endswith("_FILE")
        }
        if name not in {"postgres", "redis"}:
            assert named == set(service.get("secrets", [])), name
        assert set(service.get("secrets", [])) <= set(compose["secrets"]), name


def test_every_variable_is_one_that_the_gateway_reads(compose: dict[str, Any]) -> None:
    """Ours: a misspelt variable would keep the replicas from starting."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {PREFIX + name.upper() + FILE_SUFFIX for name in SECRETS}

    for name in (*REPLICAS, "migrate"):
        assert set(compose["services"][name]["environment"]) <= known


def test_the_drain_fits_into_the_grace(compose: dict[str, Any]) -> None:
    """Ours: a replica is not killed while its calls finish (SRV-3)."""
    for name in REPLICAS:
        service = compose["services"][name]
        environment = service["environment"]
        needed = float(environment["GATEWAY_NOTICE_S"]) + float(environment["GATEWAY_DRAIN_S"])
        assert needed + 5 <= float(service["stop_grace_period"].removesuffix("s"))


def test_replicas_wait_for_the_migration_and_redis_loses_nothing_on_a_restart(compose: dict[str, Any]) -> None:
    """Ours: the order of the start, and what Redis must keep (SRV-4)."""
    redis = compose["services"]["redis"]["command"]
    for name in REPLICAS:
        waits = compose["services"][name]["depends_on"]
        assert waits["migrate"]["condition"] == "service_completed_successfully"
    assert redis[redis.index("--appendonly") + 1] == "yes"
    assert redis[redis.index("--maxmemory-policy") + 1] == "noeviction"


def test_the_image_is_built_once_before_its_users(compose: dict[str, Any]) -> None:
    """Ours: engines build in parallel, so on a new machine two services may not make one tag (SRV-6)."""
    services = compose["services"]
    builders = {name for name, service in services.items() if "build" in service}
    users = {name for name, service in services.items() if service["image"] == services["migrate"]["image"]}

    assert builders == {"migrate"}
    assert users == {"migrate", "welcome", *REPLICAS}
    assert all("migrate" in _awaited(services, name) for name in users - builders)


def _awaited(services: dict[str, Any], name: str) -> set[str]:
    """Whatever must have started before this service does, near and far."""
    near = set(services[name].get("depends_on", {}))
    return near.union(*(_awaited(services, other) for other in near))


def test_each_awaited_service_has_a_health_check(compose: dict[str, Any]) -> None:
    """Ours: no service waits for a health check that does not exist; the replicas' check is the image's (SRV-6)."""
    for name, service in compose["services"].items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy" and other not in REPLICAS:
                assert "test" in compose["services"][other]["healthcheck"], (name, other)
    assert compose["services"]["welcome"]["depends_on"]["caddy"]["condition"] == "service_healthy"


def test_a_replica_has_the_memory_for_the_documents_it_reads(compose: dict[str, Any]) -> None:
    """Ours: a document that takes all it may does not end the replica that has it read."""
    readers = CONCURRENT_WORKERS * WorkerLimits().memory_bytes // 2**20
    checks = dear_checks.CONCURRENT_CHECKS * CheckLimits().memory_bytes // 2**20

    for name in REPLICAS:
        memory = compose["services"][name]["deploy"]["resources"]["limits"]["memory"]
        assert int(memory.removesuffix("m")) >= readers + checks + 512


def test_a_replica_may_open_a_file_for_every_connection_that_it_takes(compose: dict[str, Any]) -> None:
    """Ours: an engine's own limit may be 1,024, which a thousand listeners fill."""
    for name in REPLICAS:
        assert compose["services"][name]["ulimits"]["nofile"]["soft"] > 2 * MAX_CONNECTIONS


def test_caddy_knows_exactly_the_replicas(compose: dict[str, Any]) -> None:
    """Ours: no replica is left out, none is looked for in vain."""
    caddyfile = (ROOT / "deploy/caddy/Caddyfile").read_text()
    named = re.search(r"GATEWAY_UPSTREAMS:([^}]*)\}", caddyfile)

    assert named is not None
    assert named[1].split() == [f"{name}:8080" for name in compose["services"] if name in REPLICAS]
    assert set(compose["services"]["caddy"]["depends_on"]) == set(REPLICAS)


def test_the_example_of_the_environment_is_short_and_true() -> None:
    """Ours: at most fifteen lines, each variable is one that the file reads."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    named = {line.partition("=")[0].removeprefix("#") for line in lines if re.match(r"#?[A-Z_]+=", line)}
    read = set(re.findall(r"\$\{([A-Z_]+)", FILE.read_text()))

    assert len(lines) <= 15
    assert named <= read
    assert read - named <= {"GATEWAY_PUBLIC_URL", *read_pins(ROOT / "deploy/images.env")}


def test_a_host_name_is_all_that_real_certificates_need() -> None:
    """Ours: one variable makes the site, the public URL and the Host that is answered."""
    services = read_compose(GATEWAY_DOMAIN="mcp.example.com")["services"]

    assert services["caddy"]["environment"]["GATEWAY_DOMAIN"] == "mcp.example.com"
    assert services["gateway-a"]["environment"]["GATEWAY_PUBLIC_URL"] == "https://mcp.example.com"
    assert "mcp.example.com" in services["gateway-a"]["environment"]["GATEWAY_ALLOWED_HOSTS"].split(",")


def test_the_secrets_are_made_once_and_for_containers_only(tmp_path: Path, compose: dict[str, Any]) -> None:
    """Ours: every secret of the file exists, other people are kept out, a second run changes nothing."""
    folder = tmp_path / "secrets"
    prepare = [str(ROOT / "deploy/compose/prepare"), str(folder)]

    subprocess.run(prepare, check=True, capture_output=True)
    first = {path.name: path.read_text() for path in folder.iterdir()}
    subprocess.run(prepare, check=True, capture_output=True)

    assert {path.name: path.read_text() for path in folder.iterdir()} == first
    assert {Path(secret["file"]).name for secret in compose["secrets"].values()} <= set(first)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o444}
    assert all(len(first[name]) >= 32 for name in ("secret_keys", "operator_key", "metrics_key"))
    assert len({first[name] for name in first if name.endswith(("_password", "_key", "_keys"))}) == 7
    assert first["database_app_password"] in first["database_url"]
