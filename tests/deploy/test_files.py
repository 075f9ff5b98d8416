"""The files of `config/deploy` are valid, fit one another, and fit what the server says of itself."""

import json
import os
import re
import subprocess
import sys
import urllib.request

import kubernetes_validate
import processes
import pytest
import replicas
import yaml
from replicas import DEPLOY

KUBERNETES = DEPLOY / "kubernetes"
ROOT = DEPLOY.parents[1]
VERSION = "1.34"
"""Of Kubernetes: whose schemas the manifests are held against."""


def documents():
    """Every manifest, by its kind."""
    found = [yaml.safe_load(file.read_text()) for file in sorted(KUBERNETES.glob("*.yaml"))]
    return {document["kind"]: document for document in found}


def container():
    (container,) = documents()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


def check(file, environment):
    """What `zarrd check` says of a configuration, where the environment names what it names."""
    done = subprocess.run(
        [os.environ["ZARRD"], "check", "--config", file],
        env=environment,
        capture_output=True,
        text=True,
        timeout=processes.SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def stated_memory(file, environment):
    """The most bytes of memory that the server says it takes with as many connections as it may have."""
    configuration = check(file, environment)
    connections = int(re.search(r"^max_connections = (\d+)$", configuration, re.MULTILINE)[1])
    with subprocess.Popen(
        [os.environ["ZARRD"], "serve", "--config", file, "--listen", "127.0.0.1:0"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            base = re.fullmatch("zarrd listens on (.*)\n", process.stdout.readline())[1]
            with urllib.request.urlopen(f"{base}/v1/mounts", timeout=processes.SECONDS) as answer:
                memory = json.load(answer)["memory"]
        finally:
            process.kill()
    return memory["most_bytes"] + connections * memory["connection_bytes"]


def seconds(file, key):
    """A duration of the effective configuration, such as "1m 30s", in seconds."""
    text = re.search(rf'^{key} = "([^"]+)"$', check(file, {}), re.MULTILINE)[1]
    each = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "day": 86400, "days": 86400}
    return sum(int(number) * each[unit] for number, unit in re.findall(r"(\d+)([a-z]+)", text))


@pytest.fixture
def config_map(tmp_path):
    """The configuration in the ConfigMap, as a file."""
    (name,) = documents()["ConfigMap"]["data"]
    file = tmp_path / name
    file.write_text(documents()["ConfigMap"]["data"][name])
    return file


@pytest.mark.parametrize("file", sorted(KUBERNETES.glob("*.yaml")), ids=lambda file: file.name)
def test_a_manifest_is_what_kubernetes_takes(file):
    # These two are no part of Kubernetes itself, and have no schema here.
    document = yaml.safe_load(file.read_text())
    if document["kind"] not in ("ServiceMonitor", "Kustomization"):
        kubernetes_validate.validate(document, VERSION, strict=True)
    elif document["kind"] == "Kustomization":
        assert sorted([*document["resources"], file.name]) == sorted(file.name for file in KUBERNETES.glob("*.yaml"))


def test_a_manifest_with_a_wrong_key_is_seen():
    document = documents()["Deployment"]
    document["spec"]["template"]["spec"]["terminationGraceSeconds"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSION, strict=True)


def test_the_manifests_mean_one_another():
    found = documents()
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    named = {port["name"] for port in container()["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} <= named
    target = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", found["Deployment"]["metadata"]["name"])
    assert found["ServiceMonitor"]["spec"]["selector"]["matchLabels"] == found["Service"]["metadata"]["labels"]
    scraped = {endpoint["port"] for endpoint in found["ServiceMonitor"]["spec"]["endpoints"]}
    assert scraped <= {port["name"] for port in found["Service"]["spec"]["ports"]}
    policy = found["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == named


def test_the_pod_has_no_rights_and_knows_when_to_end(config_map):
    pod = documents()["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    user = re.search(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert pod["securityContext"]["runAsUser"] == int(user[1])
    rights = container()["securityContext"]
    assert rights["readOnlyRootFilesystem"] is True and rights["allowPrivilegeEscalation"] is False
    assert rights["capabilities"] == {"drop": ["ALL"]}
    pause = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > pause + seconds(config_map, "drain_timeout")
    paths = yaml.safe_load((ROOT / "openapi" / "openapi.json").read_text())["paths"]
    assert {container()[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} <= paths.keys()
    (mounted,) = container()["volumeMounts"]
    # Where the image expects it.
    assert f"ENV ZARRD_CONFIG={mounted['mountPath']}/{config_map.name}\n" in (ROOT / "Dockerfile").read_text()


def test_the_pods_configuration_is_valid_and_fits_its_memory(config_map):
    environment = {entry["name"]: entry.get("value", "x") for entry in container()["env"]}
    check(config_map, environment)
    environment["ZARRD__SERVER__ADMIN_LISTEN"] = "127.0.0.1:0"
    environment["ZARRD__SERVER__MAX_MEMORY"] = "2GiB"
    limit = container()["resources"]["limits"]["memory"]
    assert limit == "2Gi" and stated_memory(config_map, environment) <= 2 << 30


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_compose_file_is_what_compose_takes():
    schema = ["--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"]
    command = [sys.executable, "-m", "check_jsonschema", *schema]
    done = subprocess.run(command, capture_output=True, text=True, timeout=processes.SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_composed_replicas_have_a_valid_configuration_that_fits_their_memory():
    services = compose()["services"]
    asked = re.findall(r"^ +server (\S+):8000 ", (DEPLOY / "nginx.conf").read_text(), re.MULTILINE)
    assert set(asked) == {name for name in services if name.startswith("zarrd")} == set(services["nginx"]["depends_on"])
    for name in asked:
        service = services[name]
        environment = {name: str(value) for name, value in service["environment"].items()}
        check(DEPLOY / "zarrd.toml", environment)
        environment["ZARRD__SERVER__MAX_MEMORY"] = "2GiB"
        assert service["mem_limit"] == "2g" and stated_memory(DEPLOY / "zarrd.toml", environment) <= 2 << 30
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        grace = int(service["stop_grace_period"].removesuffix("s"))
        assert grace > seconds(DEPLOY / "zarrd.toml", "drain_timeout")


def test_nginx_takes_its_configuration(tmp_path):
    file = replicas.nginx_configuration(tmp_path, processes.free_port(), [1, 2, 3])
    command = [replicas.nginx_program(), "-t", "-c", file, "-p", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=processes.SECONDS)
    assert done.returncode == 0 and "[warn]" not in done.stderr, done.stderr


def test_nginx_waits_longer_than_the_server_and_keeps_connections_for_less():
    text = (DEPLOY / "nginx.conf").read_text()
    read, kept = (
        int(re.search(rf"^ +{name} (\d+)s;$", text, re.MULTILINE)[1])
        for name in ("proxy_read_timeout", "keepalive_timeout")
    )
    assert read > seconds(DEPLOY / "zarrd.toml", "response_timeout")
    assert kept < seconds(DEPLOY / "zarrd.toml", "idle_timeout")


def test_the_images_configuration_is_valid():
    check(ROOT / "config" / "container.toml", {})
    assert "container.toml /etc/zarrd/zarrd.toml" in (ROOT / "Dockerfile").read_text()


def test_a_file_of_ones_own_lies_over_the_images(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[cache]\ndecoded_size = 1234567\n")
    (base,) = re.findall(r"^ENV ZARRD_BASE_CONFIG=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert f"COPY config/container.toml {base}\n" in (ROOT / "Dockerfile").read_text()
    settings = check(own, {"ZARRD_BASE_CONFIG": str(ROOT / "config" / "container.toml")})
    assert 'listen = "0.0.0.0:8000"' in settings and 'decoded_size = "1234567B"' in settings
