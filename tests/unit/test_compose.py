"""compose.yaml follows the Compose Specification and our own rules."""

import re
from typing import TypeAlias

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft202012Validator

from app import GRACE_SECONDS
from components.embed.dense import LOCAL_OLLAMA
from pipelines import definition
from settings import ROOT, Settings, get_settings

Node: TypeAlias = "dict[str, Node] | list[Node] | str | int | bool | None"

SCHEMA = get_builtin_schema("vendor.compose-spec")
"""The official schema of the Compose Specification."""

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
FILE: dict[str, dict[str, dict[str, Node]]] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = FILE["services"]
PINNED = re.compile(r"[a-z][a-z0-9/-]*:(?:v|version-)?\d+\.\d+(?:\.\d+)?(?:-[a-z0-9.]+)?")
SECRET = re.compile("PASSWORD|SECRET|KEY|TOKEN")
FROM_OUTSIDE = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")


def _listed(service: dict[str, Node], key: str) -> list[str]:
    value = service.get(key) or []
    assert isinstance(value, list)
    return [str(item) for item in value]


def _environment(service: dict[str, Node]) -> dict[str, str]:
    value = service.get("environment") or {}
    assert isinstance(value, dict)
    return {name: str(setting) for name, setting in value.items()}


def test_the_file_follows_the_schema() -> None:
    assert not list(Draft202012Validator(SCHEMA).iter_errors(FILE))


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_pinned_comes_back_and_listens_locally(name: str) -> None:
    service = SERVICES[name]
    asked = {"healthcheck"} if name not in ("opora", "worker") else set()  # our image says itself how it is asked
    assert asked | {"networks", "restart"} <= service.keys()
    assert PINNED.fullmatch(str(service["image"]))
    assert all(port.startswith("127.0.0.1:") for port in _listed(service, "ports"))
    assert {volume.partition(":")[0] for volume in _listed(service, "volumes")} <= FILE["volumes"].keys()
    assert set(_listed(service, "networks")) <= FILE["networks"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_an_environment_is_text_and_its_secrets_come_from_outside(name: str) -> None:
    environment = SERVICES[name].get("environment") or {}
    assert isinstance(environment, dict)
    # YAML turns a bare `true` into what no process can read.
    assert all(isinstance(value, str) for value in environment.values())
    for variable, value in _environment(SERVICES[name]).items():
        if SECRET.search(variable):
            assert FROM_OUTSIDE.fullmatch(value) or value == f"${{{variable}:-}}", variable
        assert not re.search(r"://[^/]*:[^/]*@", value), "a password in a URL ends at its first @"


def test_nothing_declared_is_unused() -> None:
    volumes = {volume.partition(":")[0] for service in SERVICES.values() for volume in _listed(service, "volumes")}
    networks = {network for service in SERVICES.values() for network in _listed(service, "networks")}
    assert (volumes, networks) == (set(FILE["volumes"]), set(FILE["networks"]))


def test_the_stores_cannot_reach_out_and_are_not_published() -> None:
    assert FILE["networks"]["stores"] == {"internal": True}
    for name in ("qdrant", "postgres", "redis"):
        assert SERVICES[name]["networks"] == ["stores"]
        assert "ports" not in SERVICES[name]


def test_only_the_service_reaches_the_open_port_of_the_trace_viewer() -> None:
    assert [name for name, service in SERVICES.items() if "traces" in _listed(service, "networks")] == [
        "opora",
        "worker",
        "phoenix",
    ]
    assert not [port for port in _listed(SERVICES["phoenix"], "ports") if port.endswith(":4317")]


def test_the_trace_viewer_calls_nobody_and_forgets() -> None:
    for switch, value in (
        ("PHOENIX_TELEMETRY_ENABLED", "false"),
        ("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false"),
        ("PHOENIX_DISABLE_AGENT_ASSISTANT", "true"),
        ("PHOENIX_ENABLE_MCP_SERVER", "false"),
        ("PHOENIX_ALLOWED_SANDBOX_PROVIDERS", "NONE"),
        ("PHOENIX_DEFAULT_RETENTION_POLICY_DAYS", "90"),
    ):
        assert _environment(SERVICES["phoenix"])[switch] == value


def test_the_service_is_given_settings_that_exist() -> None:
    variables = [name for name in _environment(SERVICES["opora"]) if name != "PGPASSWORD"]
    given = {name.removeprefix("OPORA_").lower() for name in variables}
    image = re.findall(r"OPORA_([A-Z_]+)=", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert given | {name.lower() for name in image} <= Settings.model_fields.keys()


def test_the_service_runs_with_the_least_rights() -> None:
    service = SERVICES["opora"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert re.search(r"^USER 10001$", DOCKERFILE, re.MULTILINE)  # a number, which Kubernetes can tell from root


def test_every_room_of_the_product_is_in_the_image() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {room for room in rooms if f"COPY {room} {room}" not in dockerfile} == set()


def test_the_image_says_what_it_is_and_whether_it_is_well() -> None:
    assert re.search(r"^HEALTHCHECK .*\n +CMD .*/readyz", DOCKERFILE, re.MULTILINE)
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in DOCKERFILE
    (base,) = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-[a-z-]+", base)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}"] * 2


def test_what_a_profile_starts_is_reached_by_the_service() -> None:
    given = _environment(SERVICES["opora"])
    assert (given["OPORA_OLLAMA_URL"], given["OPORA_REDIS_URL"]) == ("http://ollama:11434", "${OPORA_REDIS_URL:-}")
    assert "redis://redis:6379/0" in (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for name in ("ollama", "redis", "phoenix", "qdrant", "postgres"):
        assert set(_listed(SERVICES["opora"], "networks")) & set(_listed(SERVICES[name], "networks"))


def test_replicas_can_be_added_and_are_given_time_to_end() -> None:
    (port,) = _listed(SERVICES["opora"], "ports")
    first, last = map(int, port.split(":")[1].split("-"))
    assert last - first >= 7
    assert "container_name" not in SERVICES["opora"]
    seconds = int(str(SERVICES["opora"]["stop_grace_period"]).removesuffix("s"))
    assert seconds >= 2 * GRACE_SECONDS


def test_a_profile_finds_ollama_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "pipelines" / "ask" / "profiles" / "ollama.yaml"
    assert LOCAL_OLLAMA in str(definition.load(path))
    monkeypatch.setenv("OPORA_OLLAMA_URL", "http://ollama:11434")
    get_settings.cache_clear()
    moved = str(definition.load(path))
    get_settings.cache_clear()
    assert LOCAL_OLLAMA not in moved
    assert moved.count("http://ollama:11434") > 1
