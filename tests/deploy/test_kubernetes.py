"""The manifests for Kubernetes: by their schemas, as they are and as kustomize joins them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

from tests.deploy.files import (
    BROWSERS,
    KUBERNETES,
    PROBES,
    QUEUES,
    SETTLE_SECONDS,
    compose,
    in_bytes,
    load,
    manifests,
    pod_of,
)

# The oldest and the newest that people run.
VERSIONS = ("1.29", "1.34")
DOCUMENTS = [(path, each) for path, documents in manifests().items() for each in documents]
CUSTOM = {"ScaledObject", "ServiceMonitor", "PodMonitor"}
(SETTINGS,) = load(KUBERNETES / "base" / "settings.yaml")


@cache
def rendered() -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl here, which has kustomize")
    made = subprocess.run(
        [kubectl, "kustomize", str(KUBERNETES / "scanner")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return list(YAML(typ="safe").load_all(made.stdout))


def check(document: dict[str, Any], versions: Sequence[str] = VERSIONS) -> None:
    """The schema of Kubernetes accepts it, and it has nothing that the schema does not know."""
    for version in versions:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize(
    ("path", "document"), DOCUMENTS, ids=[f"{path} {each['kind']}" for path, each in DOCUMENTS]
)
def test_schemas_accept_the_manifests(path: str, document: dict[str, Any]) -> None:
    if document["kind"] in CUSTOM:
        check_custom(document)
    else:
        check(document)


def test_schemas_refuse_what_does_not_exist() -> None:
    (worker,) = load(KUBERNETES / "workers" / "api" / "worker.yaml")
    pod_of(worker)["containers"][0]["livenesProbe"] = {}  # type: ignore[index]
    with pytest.raises(kubernetes_validate.ValidationError, match="livenesProbe"):
        check(worker)


def check_custom(document: dict[str, Any]) -> None:
    """Kinds of KEDA and of the operator, without a schema here: the fields that we use."""
    spec = document["spec"]
    if document["kind"] == "ScaledObject":
        assert document["apiVersion"] == "keda.sh/v1alpha1"
        known = {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval"}
        assert set(spec) == known | {"cooldownPeriod", "fallback", "triggers"}
        for trigger in spec["triggers"]:
            assert trigger["type"] == "prometheus"
            texts = {"serverAddress", "query", "threshold", "activationThreshold"}
            assert set(trigger["metadata"]) == texts
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
    else:
        assert document["apiVersion"] == "monitoring.coreos.com/v1"
        endpoints = "endpoints" if document["kind"] == "ServiceMonitor" else "podMetricsEndpoints"
        assert set(spec) == {"selector", endpoints}
        assert [set(each) for each in spec[endpoints]] == [{"port", "interval", "relabelings"}]


def test_schemas_accept_what_kustomize_makes() -> None:
    for document in rendered():
        if document["kind"] in CUSTOM:
            check_custom(document)
        else:
            check(document, VERSIONS[-1:])
        assert document["metadata"]["namespace"] == "headrace"
        assert document["metadata"]["name"].startswith("headrace-")


def workers() -> dict[str, dict[str, Any]]:
    """The Deployments of workers by their queue."""
    return {
        each["metadata"]["labels"]["headrace.dev/queue"]: each
        for each in rendered()
        if each["kind"] == "Deployment"
        and each["metadata"]["labels"]["app.kubernetes.io/component"] == "worker"
    }


def test_there_is_a_worker_for_each_queue_with_the_memory_of_the_compose_file() -> None:
    services = compose()["services"]
    assert set(workers()) == set(QUEUES)
    for queue, deployment in workers().items():
        # KEDA decides how many.
        assert "replicas" not in deployment["spec"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"] == labels
        assert labels["headrace.dev/queue"] == queue
        pod = pod_of(deployment)
        assert pod is not None
        (worker,) = pod["containers"]
        memory = in_bytes(worker["resources"]["limits"]["memory"])
        assert memory == in_bytes(services[queue]["mem_limit"])
        assert worker["image"] == services[queue]["image"]
        mounts = {each["mountPath"] for each in worker["volumeMounts"]}
        assert ("/dev/shm" in mounts) is (queue in BROWSERS)
        assert mounts >= {"/tmp", "/var/lib/headrace"}


def test_each_queue_scales_by_its_own_age() -> None:
    scaled = {
        each["spec"]["scaleTargetRef"]["name"]: each["spec"]
        for each in rendered()
        if each["kind"] == "ScaledObject"
    }
    assert set(scaled) == {each["metadata"]["name"] for each in workers().values()}
    for name, spec in scaled.items():
        queue = name.removeprefix("headrace-worker-")
        age, running = (each["metadata"]["query"] for each in spec["triggers"])
        assert age.startswith("max(headrace_queue_oldest_seconds{")
        assert f'queue="{queue}"' in age
        assert running.startswith("max(headrace_queue_jobs{")
        assert f'queue="{queue}", state="running"' in running


@pytest.mark.parametrize(
    ("path", "document"),
    [(path, each) for path, each in DOCUMENTS if pod_of(each)],
    ids=[path for path, each in DOCUMENTS if pod_of(each)],
)
def test_pods_are_confined_limited_and_probed(path: str, document: dict[str, Any]) -> None:
    pod = pod_of(document)
    assert pod is not None
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert in_bytes(container["resources"]["limits"]["memory"]) > 0
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
        # Secrets by reference, never in the file.
        assert {"secretRef": {"name": "headrace-secret"}} in container["envFrom"]
    if document["kind"] == "Deployment":
        grace = float(SETTINGS["data"]["HEADRACE_GRACE_SECONDS"])
        assert pod["terminationGracePeriodSeconds"] >= grace + SETTLE_SECONDS
        (container,) = pod["containers"]
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
        assert {"name": "probes", "containerPort": int(PROBES)} in container["ports"]
        assert pod["initContainers"][0]["command"] == ["headrace", "migrate", "--wait"]


def test_what_is_selected_exists() -> None:
    pods = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in rendered()
        if each["kind"] in {"Deployment", "Job"}
    ]
    for document in rendered():
        spec = document["spec"] if document["kind"] != "ConfigMap" else {}
        selector = spec.get("podSelector") or spec.get("selector") or {}
        wanted = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
        if document["kind"] in {"Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor"}:
            assert any(wanted.items() <= labels.items() for labels in pods), document["metadata"]
