"""The manifests agree with the image, the settings and compose.yaml."""

import re

import yaml

from app import GRACE_SECONDS
from settings import ROOT, Settings

DOCUMENTS = list(yaml.safe_load_all((ROOT / "docs" / "kubernetes" / "opora.yaml").read_text(encoding="utf-8")))
BY_KIND = {document["kind"]: document for document in DOCUMENTS}
POD = BY_KIND["StatefulSet"]["spec"]["template"]["spec"]
WORKER = BY_KIND["Deployment"]["spec"]["template"]["spec"]
CONTAINERS = [*POD["initContainers"], *POD["containers"], *WORKER["containers"]]


def test_settings_exist_and_secrets_are_in_none_of_the_files() -> None:
    given = {*BY_KIND["ConfigMap"]["data"], *(one["name"] for one in CONTAINERS[0]["env"])} - {"PGPASSWORD"}
    assert {name.removeprefix("OPORA_").lower() for name in given} <= Settings.model_fields.keys()
    assert all(isinstance(value, str) for value in BY_KIND["ConfigMap"]["data"].values())
    assert all("secretKeyRef" in one["valueFrom"] for container in CONTAINERS for one in container["env"])
    assert not [value for value in BY_KIND["ConfigMap"]["data"].values() if re.search(r"://[^/]*:[^/]*@", value)]


def test_the_least_rights_and_time_to_end() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert f"USER {POD['securityContext']['runAsUser']}" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for container in CONTAINERS:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert POD["terminationGracePeriodSeconds"] >= 2 * GRACE_SECONDS


def test_the_image_is_that_of_compose_and_probes_ask_routes_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert {container["image"] for container in CONTAINERS} == {compose["services"]["opora"]["image"]}
    (service,) = POD["containers"]
    assert service["readinessProbe"]["httpGet"]["path"] == service["startupProbe"]["httpGet"]["path"] == "/readyz"
    assert service["livenessProbe"]["httpGet"]["path"] == "/healthz"
    labels = BY_KIND["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "StatefulSet"):
        selector = BY_KIND[kind]["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels
    claims = {one["metadata"]["name"] for one in BY_KIND["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    volumes = claims | {one["name"] for one in POD["volumes"]}
    assert all(mount["name"] in volumes for container in CONTAINERS for mount in container["volumeMounts"])
