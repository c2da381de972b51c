"""From the setting `artifacts` to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.artifacts import open_store
from headrace.artifacts.address import S3Address, parse_s3
from headrace.artifacts.local import LocalFolder
from headrace.artifacts.s3 import S3Bucket
from headrace.errors import InvalidSetting


@pytest.mark.parametrize(
    ("setting", "folder"),
    [
        ("data/artifacts", "data/artifacts"),
        ("/srv/artifacts", "/srv/artifacts"),
        ("file:///srv/my%20files", "/srv/my files"),
        ("C:odd", "C:odd"),
    ],
)
def test_a_folder(setting: str, folder: str) -> None:
    backend = open_store(setting).backend
    assert isinstance(backend, LocalFolder)
    assert backend.folder == Path(folder)


def test_a_bucket() -> None:
    url = "s3://lake/headrace/runs/?endpoint=https%3A%2F%2Fminio.example%3A9000&region=eu-west-1"
    assert parse_s3(url) == S3Address(
        "lake", "headrace/runs", "https://minio.example:9000", "eu-west-1"
    )
    assert parse_s3("s3://lake") == S3Address("lake")
    assert parse_s3("s3://lake?path_style=false").path_style is False
    store = open_store(url)
    assert isinstance(store.backend, S3Bucket)
    assert store.where == "s3://lake/headrace/runs at https://minio.example:9000"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("gs://bucket/x", "unknown scheme 'gs'"),
        ("s3://", "has the bucket ''"),
        ("s3://No_Such", "has the bucket 'No_Such'"),
        ("s3://ab", "use 3 to 63 small letters"),
        ("s3://bucket?secret_access_key=hunter2", "parameter 'secret_access_key'"),
        ("s3://bucket?region=a&region=b", "has it twice"),
        ("s3://bucket?region", "cannot be read"),
        ("s3://AKIA:hunter2@bucket/x", "credentials in its URL"),
        ("s3://bucket?endpoint=http://me:hunter2@host", "without credentials"),
        ("s3://bucket?endpoint=ftp://host", "use https://host:port"),
        ("s3://bucket?endpoint=http://host:99999", "use https://host:port"),
        ("s3://bucket?path_style=maybe", "use true or false"),
        ("s3://bucket/a/../b", "that cannot be used"),
        ("s3://bucket/" + "x" * 300, "more than 250 bytes"),
    ],
)
def test_what_cannot_be_used_is_told_without_secrets(setting: str, told: str) -> None:
    with pytest.raises(InvalidSetting, match=told) as raised:
        open_store(setting)
    assert "hunter2" not in str(raised.value)
    assert "artifacts" in str(raised.value)


def test_an_app_takes_the_setting_and_asks_nobody(tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts="s3://bucket/prefix")
    assert app.artifact_store.where == "s3://bucket/prefix"
    with pytest.raises(InvalidSetting):
        headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts="nowhere://bucket")
