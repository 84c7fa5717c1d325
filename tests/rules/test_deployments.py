"""The files of docs/cluster/ fit this release: its variables and their values, commands, ports, routes and engines."""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from svc_daemon.command.main import app as daemon_app
from svc_daemon.settings.daemon import DEFAULT_PORT, Role, Settings
from svc_daemon.settings.limits import Limits, SettingError
from tests.rules.modules import ROOT, modules
from tests.rules.test_docs import VARIABLE, strings
from tests.rules.transcripts import fences

FOLDER = ROOT / "docs" / "cluster"
#: What engines' libraries read, by their own documentation.
OTHERS = {"AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SSL_CERT_FILE"}
#: The oldest release of each engine that the service takes, by the name of its image.
OLDEST = {"postgres": (15,), "milvusdb/milvus": (2, 5)}


def read(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def kubernetes(kind: str) -> list[dict[str, Any]]:
    return [each for each in read("kubernetes.yaml") if each["kind"] == kind]


def compose() -> dict[str, Any]:
    (file,) = read("compose.yaml")
    return dict(file["services"])


@cache
def _variables() -> set[str]:
    return strings(VARIABLE, modules())


def settings_of(environ: dict[str, str], words: list[str]) -> Settings:
    """The settings of a node with these variables, of which each must be known, and command line after the image."""
    environ = {name: re.sub(r"\$\{\w+:\?\}", "secret", value) for name, value in environ.items()}
    assert set(environ) - OTHERS <= _variables()
    name, *options = words
    serve = get_command(daemon_app).commands[name]  # type: ignore[attr-defined]
    parsed = serve.make_context(name, list(options)).params
    return Settings.from_environ(environ, parsed["listen"], parsed["role"])


def test_nodes_have_settings_that_the_service_takes() -> None:
    (secret,), (public,) = kubernetes("Secret"), kubernetes("ConfigMap")
    pods = [each["spec"]["template"]["spec"] for each in kubernetes("Deployment")]
    settings = [settings_of(public["data"] | secret["stringData"], pod["containers"][0]["args"]) for pod in pods]
    assert [each.role for each in settings] == [Role.API, Role.WORKER]
    nodes = [each for name, each in compose().items() if name.startswith("node")]
    settings += [settings_of(node["environment"], ["serve"]) for node in nodes]
    for each in settings:
        assert each.cluster is not None
        assert (each.port, each.is_loopback) == (DEFAULT_PORT, False)
    limits = Limits()
    assert all(pod["terminationGracePeriodSeconds"] > limits.stop_seconds for pod in pods)
    assert all(int(node["stop_grace_period"].removesuffix("s")) > limits.stop_seconds for node in nodes)
    # Certificates lie where the containers have them.
    mounted = {mount["mountPath"] for pod in pods for mount in pod["containers"][0]["volumeMounts"]}
    for name in ("SVC_TLS_CERT", "SVC_TLS_KEY", "SSL_CERT_FILE"):
        assert public["data"][name].rpartition("/")[0] in mounted
    with pytest.raises(SettingError):
        settings_of({"SVC_STATE_URL": "mysql://x"}, ["serve"])
    with pytest.raises(AssertionError):
        settings_of({"SVC_STATE": "x"}, ["serve"])


def test_the_variables_of_the_page_are_taken_as_they_are_shown() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (shown,) = [fence for fence in fences(page) if any("SVC_STATE_URL" in each.line for each in fence.commands)]
    words = [shlex.split(command.line) for command in shown.commands]
    exported = dict(word.split("=", 1) for line in words if line[0] == "export" for word in line[1:])
    (serve,) = [line[1:] for line in words if line[0] == "svc-daemon"]
    settings = settings_of(exported, serve)
    assert (settings.cluster is not None, settings.port) == (True, DEFAULT_PORT)


def test_ports_and_probes_are_those_of_the_service() -> None:
    (service,) = kubernetes("Service")
    (port,) = service["spec"]["ports"]
    for each in kubernetes("Deployment"):
        (container,) = each["spec"]["template"]["spec"]["containers"]
        assert container["ports"] == [{"name": port["targetPort"], "containerPort": DEFAULT_PORT}]
        probes = [value["httpGet"] for name, value in container.items() if name.endswith("Probe")]
        assert len(probes) >= 2
        for probe in probes:
            assert (probe["port"], probe["scheme"]) == (port["targetPort"], "HTTPS")
            assert probe["path"] in {"/healthz", "/healthz?ready=true"}
            # A node refuses the name of its pod.
            assert probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    budget, role = (
        kubernetes("PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"],
        {"app": "svc", "role": "api"},
    )
    assert service["spec"]["selector"] == budget == role
    text = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"node-\d:(\d+)", text)) == {str(DEFAULT_PORT)}


def test_images_are_of_one_release_that_the_service_takes() -> None:
    images = [each["image"] for each in compose().values() if "image" in each]
    for image in images:
        name, _, tag = image.rpartition(":")
        assert re.search(r"\d", tag), f"{image} must be of one release"
        if name in OLDEST:
            assert tuple(int(number) for number in re.findall(r"\d+", tag)) >= OLDEST[name]
    assert OLDEST.keys() <= {image.rpartition(":")[0] for image in images}
    release = re.search(
        r'^VERSION = "(\d+\.\d+)', (ROOT / "svc_daemon/wire/light/versions.py").read_text(), re.MULTILINE
    )
    assert release is not None
    pods = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in kubernetes("Deployment")]
    ours = [image.rpartition(":")[2] for image in (*images, *pods) if re.search(r"(^|/)svc:", image)]
    assert set(ours) == {release[1]}


def test_an_image_is_built_from_the_files_of_the_package_alone() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")]
    sent = {line[1:] for line in lines if line.startswith("!")}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    shared = {Path(path).parts[0] for path in wheel["shared-data"]}
    project = build["project"]
    named = {"pyproject.toml", "constraints.txt", project["readme"], *project["license-files"]}
    # All else stays out, such as a file with the passwords of docs/cluster/compose.yaml.
    assert (lines[0], sent) == ("*", named | shared | set(wheel["packages"]))


def test_an_image_runs_the_daemon_as_a_user_without_rights() -> None:
    for path in (ROOT / "docs").rglob("Dockerfile"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^USER (.+)$", text, re.MULTILINE) == ["svc"], path
        assert f"EXPOSE {DEFAULT_PORT}" in text
        assert 'CMD ["serve", "--listen", "0.0.0.0:7820"]' in text
    container = (ROOT / "docs/container/Dockerfile").read_text(encoding="utf-8")
    # A request by HTTP would fail as soon as the daemon has a certificate.
    assert 'CMD ["svc", "daemon", "status"]' in container
