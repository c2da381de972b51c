"""Reads the files of deploy/ as the programs do that use them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))

# System E: its queues, and which of them need a browser.
QUEUES = ("hwahae", "oliveyoung", "zigzag", "musinsa", "ably", "kurly", "extract", "default")
BROWSERS = {"oliveyoung", "ably", "kurly"}
PROBES = "9464"
API = "3989"
# From the end of the grace time until the last outcome is stored (docs/how-to/deploy-workers.md).
SETTLE_SECONDS = 15

_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class Use(NamedTuple):
    """A command of ours in a file, with the environment that it gets there."""

    place: str
    command: list[str]
    environment: dict[str, str]


def load(path: Path) -> list[Any]:
    """The documents of a YAML file."""
    return [each for each in YAML(typ="safe").load_all(path) if each is not None]


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """Fill variables in as Compose does: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`."""
    if isinstance(value, dict):
        return {key: interpolated(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [interpolated(each, variables) for each in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, sign, rest = match.groups()
        if variables.get(name):
            return variables[name]
        assert sign != "?", f"{name}: {rest}"
        return rest or ""

    return _VARIABLE.sub(fill, value)


def compose(**variables: str) -> dict[str, Any]:
    """The Compose file, with anchors and variables filled in."""
    (content,) = load(DEPLOY / "compose.yaml")
    filled: dict[str, Any] = interpolated(content, {"POSTGRES_PASSWORD": "from .env"} | variables)
    return filled


def ours(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services of a Compose file that run Headrace for as long as it is up."""
    return {
        name: service
        for name, service in content["services"].items()
        if service.get("command", [""])[0] == "headrace" and service["restart"] != "no"
    }


def in_bytes(text: str) -> int:
    """`2g` or `512Mi` as a number."""
    found = re.fullmatch(r"(\d+)([kmg]?)i?", text.lower())
    assert found is not None, text
    factor: int = 1024 ** " kmg".index(found[2] or " ")
    return int(found[1]) * factor


def in_seconds(text: str) -> float:
    """`60s` or `1m30s` as a number."""
    units = {"s": 1, "m": 60, "h": 3600}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([smh])", text))


def manifests() -> dict[str, list[dict[str, Any]]]:
    """The files for Kubernetes, as they are, by their path. Those of kustomize itself left out."""
    return {
        str(path.relative_to(KUBERNETES)): load(path)
        for path in sorted(KUBERNETES.rglob("*.yaml"))
        if path.name != "kustomization.yaml"
    }


def pod_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """What a Deployment or a Job runs."""
    if document["kind"] not in {"Deployment", "Job"}:
        return None
    pod: dict[str, Any] = document["spec"]["template"]["spec"]
    return pod


def unit(path: Path) -> ConfigParser:
    """A unit of systemd; names that occur twice have the last value."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return parser


def env_file(path: Path) -> dict[str, str]:
    """The variables of a file such as `.env`, those in comments too."""
    lines = (line.strip().removeprefix("#") for line in path.read_text("utf-8").splitlines())
    found = (re.fullmatch(r"([A-Z_]+)=(.*)", line) for line in lines)
    return {each[1]: each[2] for each in found if each is not None}


def uses() -> Iterator[Use]:
    """Every command of ours in deploy/, with its environment."""
    for name, service in compose()["services"].items():
        if service.get("command", [""])[0] == "headrace":
            yield Use(f"compose.yaml {name}", service["command"], service["environment"])
    (settings,) = load(KUBERNETES / "base" / "settings.yaml")
    for path, documents in manifests().items():
        for document in documents:
            pod = pod_of(document) or {}
            for container in [*pod.get("initContainers", []), *pod.get("containers", [])]:
                own = {each["name"]: each.get("value", "text") for each in container.get("env", [])}
                place = f"{path} {container['name']}"
                yield Use(place, container["command"], settings["data"] | own)
    shared = env_file(DEPLOY / "systemd" / "headrace.env.example")
    for file in UNITS:
        command = shlex.split(unit(file)["Service"]["ExecStart"])
        own = shared
        if "worker@" in file.name:
            own = shared | env_file(DEPLOY / "systemd" / "worker.env.example")
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("Environment="):
                name, _, value = line.removeprefix("Environment=").partition("=")
                own = own | {name: value}
        yield Use(file.name, [Path(command[0]).name, *command[1:]], own)
