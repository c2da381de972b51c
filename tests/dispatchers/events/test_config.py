"""queue.yaml: what it says, and what is said about mistakes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.dispatchers.events.adapters.kafka import KafkaAdapter
from headrace.dispatchers.events.config import make_adapter, read_queue_config
from headrace.errors import InvalidSetting

KAFKA = """\
# The broker of the shop.
adapter: kafka
batch_size: 200
options:
  bootstrap_servers: ${BROKER:-localhost:9092}
  topics: [orders, returns]
  security_protocol: SASL_PLAINTEXT
  sasl_username: shop
  sasl_password: ${KAFKA_PASSWORD}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "queue.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def make(folder: Path, text: str, **environment: str) -> Any:
    return make_adapter(read_queue_config(write(folder, text), environment=environment))


def test_a_file_says_all_that_an_adapter_needs(tmp_path: Path) -> None:
    config = read_queue_config(write(tmp_path, KAFKA), environment={"KAFKA_PASSWORD": "se$cret"})
    assert config.batch_size == 200
    assert config.options["bootstrap_servers"] == "localhost:9092"
    assert config.options["sasl_password"] == "se$cret"
    adapter = make_adapter(config)
    assert isinstance(adapter, KafkaAdapter)
    assert adapter._piece == 100
    assert adapter._settings["sasl_plain_password"] == "se$cret"


OTHERS = """\
queue_dispatcher:
  database: default
  kafka_bootstrap_servers: ${BROKER:-localhost:9092}
  kafka_group_id: shop
  kafka_topic: orders
"""


def test_the_files_of_dispatchers_for_kafka_alone_are_understood(tmp_path: Path) -> None:
    config = read_queue_config(write(tmp_path, OTHERS), environment={"BROKER": "broker:9092"})
    assert config.adapter == "kafka"
    adapter = make_adapter(config)
    assert isinstance(adapter, KafkaAdapter)
    assert adapter._topics == ["orders"]
    assert adapter._settings["bootstrap_servers"] == "broker:9092"
    assert adapter._settings["group_id"] == "shop"
    several = OTHERS.replace("orders", "[orders, returns]") + "  batch_size: 7\n"
    config = read_queue_config(write(tmp_path, several), environment={})
    assert (config.options["topics"], config.batch_size) == (["orders", "returns"], 7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OTHERS.replace("default", "other"), "database must be \"default\", got 'other'"),
        (OTHERS.replace("_topic", "_topik"), 'did you mean "queue_dispatcher.kafka_topic"?'),
        (OTHERS.replace("orders", "5"), "option topics has the value 5"),
        (OTHERS + "adapter: kafka\n", "adapter cannot stand beside queue_dispatcher"),
        ("queue_dispatcher:\n", "queue_dispatcher must have names with values"),
        ("queue_dispatcher: {database: default}\n", "kafka needs the option topics"),
        ("adapter: kafka\noptions: {topics: [a]}\nbatchsize: 5\n", 'did you mean "batch_size"?'),
        ("adapter: kafka\nbatch_size: 0\n", "batch_size must be between 1 and 10000, got 0"),
        ("adapter: kafka\nbatch_size: many\n", "batch_size has the value 'many'"),
        ("adapter: kafak\n", 'unknown adapter "kafak"; did you mean "kafka"?'),
        ("adapter: kafka\n", "kafka needs the option topics"),
        ("adapter: kafka\noptions:\n  topics: [a]\n  goup: x\n", 'did you mean "group"?'),
        ("adapter: kafka\noptions:\n  topics: 5\n", "option topics has the value 5"),
        ("adapter: kafka\noptions:\n  topics: []\n", "topics must name at least one topic"),
        ("adapter: kafka\noptions:\n  topics: [a]\n  security_protocol: TLS\n", "'TLS'"),
        ("adapter: sqs\noptions: {queue_url: x, wait_seconds: 21}\n", "between 0 and 20, got 21"),
        ("adapter: 'no.such.module:Thing'\n", "cannot be loaded"),
        ("adapter: 'pathlib:Path'\n", "must be a class made from"),
        ("adapter: 'pathlib:Nothing'\n", "there is none"),
        (
            "adapter: 'headrace.dispatchers.events.adapter:QueueAdapter'\n",
            "lacks: abandon, complete",
        ),
        ("adapter: 'os system'\n", "package.module:Class"),
        ("batch_size: 5\n", "names no adapter"),
        ("", "names no adapter"),
        ("# nothing\n", "names no adapter"),
        ("---\n", "names no adapter"),
        ("adapter: no\n", 'unknown adapter "no"; known: kafka'),
        ("- a\n- b\n", "must have names with values"),
        ("adapter: [kafka\n", "is not valid YAML"),
        ("adapter: kafka\noptions: {topics: [a], group: '${NOT_SET}'}\n", "variable NOT_SET"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        make(tmp_path, text)
    assert said in str(caught.value)
    assert "queue.yaml" in str(caught.value)


def test_the_line_is_the_one_at_fault(tmp_path: Path) -> None:
    text = "adapter: kafka\noptions:\n  topics: [a]\n  session_timeout_ms: soon\n"
    with pytest.raises(InvalidSetting, match=r"queue\.yaml line 4\)"):
        make(tmp_path, text)


def test_no_secret_is_told(tmp_path: Path) -> None:
    text = "adapter: kafka\noptions:\n  topics: [a]\n  sasl_password: [hunter2]\n"
    with pytest.raises(InvalidSetting) as caught:
        make(tmp_path, text)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="there is no file"):
        read_queue_config(tmp_path / "none.yaml")
