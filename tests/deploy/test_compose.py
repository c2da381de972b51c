"""The Compose file: its schema, system E's ten containers, their limits and health checks."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from typing import Any

import pytest
from compose_spec import PyCompose

from tests.deploy.files import (
    API,
    BROWSERS,
    DEPLOY,
    PROBES,
    QUEUES,
    SETTLE_SECONDS,
    compose,
    in_bytes,
    in_seconds,
    load,
    ours,
)

CONTENT = compose()
OURS = ours(CONTENT)
GIGABYTE = 1024**3


def test_the_specification_accepts_it() -> None:
    parsed = PyCompose.from_json(json.dumps(CONTENT))
    parsed.validate()
    assert set(parsed.service_names()) == set(CONTENT["services"])


def test_the_specification_refuses_what_does_not_exist() -> None:
    wrong: Any = copy.deepcopy(CONTENT)
    wrong["services"]["cron"]["mem_limitt"] = "1g"
    with pytest.raises(ValueError, match="mem_limitt"):
        PyCompose.from_json(json.dumps(wrong))


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in deploy/ to its end."""
    variables = os.environ | environment
    return subprocess.run(
        command, check=False, cwd=DEPLOY, env=variables, capture_output=True, text=True
    )


def test_docker_compose_accepts_it() -> None:
    docker = shutil.which("docker")
    if docker is None or run([docker, "compose", "version"]).returncode != 0:
        pytest.skip("there is no container engine with Compose here")
    command = [docker, "compose", "-f", "compose.yaml", "--profile", "*", "config", "--quiet"]
    checked = run(command, POSTGRES_PASSWORD="x")
    assert checked.returncode == 0, checked.stderr


def test_there_are_the_ten_containers_of_system_e() -> None:
    assert set(OURS) == {"server", "cron", *QUEUES}
    assert len(OURS) == 10
    served = {OURS[queue]["environment"]["WORKER_PLATFORMS"] for queue in QUEUES}
    assert served == set(QUEUES)
    assert all(OURS[queue]["environment"]["WORKER_PLATFORMS"] == queue for queue in QUEUES)


@pytest.mark.parametrize("queue", QUEUES)
def test_browser_workers_have_more_memory_and_shared_memory(queue: str) -> None:
    service = OURS[queue]
    browser = queue in BROWSERS
    assert in_bytes(service["mem_limit"]) == (4 if browser else 2) * GIGABYTE
    assert ("shm_size" in service) is browser
    assert service["build"]["target"] == ("browser" if browser else "headrace")
    assert ("browser" in service["image"]) is browser


@pytest.mark.parametrize("name", CONTENT["services"])
def test_every_service_is_limited_and_confined(name: str) -> None:
    service = CONTENT["services"][name]
    assert in_bytes(service["mem_limit"]) > 0
    assert "no-new-privileges:true" in service["security_opt"]
    assert "healthcheck" in service
    # PostgreSQL's image prepares its data folder as root.
    if name != "postgres":
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)?:[\w.-]+", service["image"])
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", OURS)
def test_ours_may_finish_their_jobs_and_are_checked(name: str) -> None:
    service = OURS[name]
    grace = float(service["environment"]["HEADRACE_GRACE_SECONDS"])
    assert in_seconds(service["stop_grace_period"]) >= grace + SETTLE_SECONDS
    # Without swap: the limit is the limit.
    assert service["memswap_limit"] == service["mem_limit"]
    assert any(each.startswith("/tmp:") for each in service["tmpfs"])
    assert service["environment"]["HEADRACE_PROBES"] == f"0.0.0.0:{PROBES}"
    check = service["healthcheck"]["test"]
    assert check[0] == "CMD"
    assert f"127.0.0.1:{PROBES}/readyz" in check[-1]
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_no_secret_is_in_the_file() -> None:
    (raw,) = load(DEPLOY / "compose.yaml")
    for name, service in raw["services"].items():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY|TOKEN", variable):
                assert re.fullmatch(r"\$\{\w+:\?.*\}|/run/secrets/\w+", value), (name, variable)
        assert "env_file" not in service
    urls = re.findall(r"\w+://[^\s}]*", (DEPLOY / "compose.yaml").read_text("utf-8"))
    assert urls
    assert not [url for url in urls if re.search(r"://[^/@]*:[^/@]*@", url)]
    assert all(set(each) == {"file"} for each in raw["secrets"].values())
    ignored = (DEPLOY.parent / ".gitignore").read_text("utf-8").split()
    assert {"deploy/.env", "deploy/secrets/"} <= set(ignored)


def test_files_that_are_mounted_exist() -> None:
    for service in CONTENT["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).is_dir()
            else:
                assert source in CONTENT["volumes"]


def test_prometheus_scrapes_all_ten() -> None:
    (content,) = load(DEPLOY / "prometheus" / "prometheus.yaml")
    targets = {
        job["job_name"]: job["static_configs"][0]["targets"] for job in content["scrape_configs"]
    }
    assert targets == {
        "headrace-server": [f"server:{PROBES}"],
        "headrace-worker": [f"{queue}:{PROBES}" for queue in QUEUES],
        "headrace-dispatcher": [f"cron:{PROBES}"],
    }
    (told,) = content["alerting"]["alertmanagers"]
    assert told["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    assert OURS["server"]["ports"] == [f"127.0.0.1:{API}:{API}"]
