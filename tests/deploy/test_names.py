"""Every option and every variable in deploy/ is one that the code really has."""

from __future__ import annotations

import re

import msgspec
import pytest

from headrace.config import load
from headrace.errors import InvalidSetting
from headrace.installed_bundles import bundle_of, installed, variable_prefix
from tests.deploy.files import DEPLOY, Use, env_file, uses
from tests.docs.test_commands import check, root

USES = list(uses())
# Of drivers and of other programs.
FOREIGN = {"PGPASSWORD"}
ALIASES = {"WORKER_QUEUES", "WORKER_PLATFORMS", "API_URL"}


def test_all_files_are_read() -> None:
    places = {use.place.split()[0] for use in USES}
    assert {"compose.yaml", "base/server.yaml", "workers/api/worker.yaml"} <= places
    assert {"headrace-server.service", "headrace-worker@.service"} <= places
    assert len(USES) >= 11 + 7 + 5


@pytest.mark.parametrize("use", USES, ids=lambda use: use.place)
def test_every_command_and_option_exists(use: Use) -> None:
    check(root(), use.command, None, whole=True)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.place)
def test_every_variable_is_a_setting_that_its_value_fits(use: Use) -> None:
    foreign = {name for name in use.environment if not name.startswith("HEADRACE_")}
    assert foreign <= FOREIGN | ALIASES
    settings = load(environment=use.environment, folder=DEPLOY)
    if "WORKER_PLATFORMS" in use.environment:
        assert settings.queues == (use.environment["WORKER_PLATFORMS"],)


def test_every_variable_of_a_bundle_is_a_setting_of_it() -> None:
    for use in USES:
        for name in use.environment:
            if (bundle := bundle_of(name)) is not None:
                (point,) = installed()[bundle]
                fields = {field.name for field in msgspec.structs.fields(point.load().settings)}
                assert name.removeprefix(variable_prefix(bundle)).lower() in {*fields, "url"}


def test_a_variable_that_does_not_exist_is_found() -> None:
    with pytest.raises(InvalidSetting, match="HEADRACE_GRACE"):
        load(environment={"HEADRACE_GRACE_SECOND": "30"}, folder=DEPLOY)


def test_the_example_names_every_variable_that_the_compose_file_reads() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    known = env_file(DEPLOY / ".env.example")
    for name in known:
        assert f"${{{name}:" in text, f"compose.yaml does not read {name}"

    assert set(re.findall(r"\$\{(\w+)", text)) == set(known)
    # Nobody's password is in the repository.
    assert known["POSTGRES_PASSWORD"] == ""
