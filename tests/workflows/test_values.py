"""References and conditions: what they stand for in a run."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import InvalidInput
from headrace.workflows.conditions import BadCondition, Condition
from headrace.workflows.references import BadReference, resolve

SCOPE: dict[str, Any] = {
    "params": {"url": "https://a.example", "n": 3, "on": True, "none": None},
    "run": {"id": "r1"},
    "steps": {
        "fetch": {"status": "completed", "output": {"rows": [{"price": 1.5}], "a b": "ä"}},
        "skipped": {"status": "skipped", "output": None},
    },
    "item": {"id": 7},
    "index": 0,
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("${params.n}", 3),
        ("${ params.n }", 3),
        ("n is ${params.n}!", "n is 3!"),
        ("${params.url}/${item.id}", "https://a.example/7"),
        ("${steps.fetch.output.rows[0].price}", 1.5),
        ('${steps.fetch.output["a b"]}', "ä"),
        ("${steps.fetch.output.rows}", [{"price": 1.5}]),
        ("rows: ${steps.fetch.output.rows}", 'rows: [{"price":1.5}]'),
        ("${steps.skipped.output.rows[0].price}", None),
        ("${steps.skipped.status}", "skipped"),
        ("$${params.n}", "${params.n}"),
        ("a $${b} ${index}", "a ${b} 0"),
        ({"a": ["${params.on}", {"b": "${run.id}"}]}, {"a": [True, {"b": "r1"}]}),
        (7, 7),
        (None, None),
    ],
)
def test_references_are_replaced(value: Any, expected: Any) -> None:
    assert resolve(value, SCOPE) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${params.x}", "an object with 'url', 'n', 'on', 'none' has no 'x'"),
        ("${steps.fetch.output.rows[3]}", "a list of 1 has no 3"),
        ("${steps.fetch.output.rows.name}", "a list of 1 has no 'name'"),
        ("${params.n.x}", "a int has no 'x'"),
        ("${params.none.x}", "null has no 'x'"),
        ("${params.url.__class__}", "a str has no '__class__'"),
        ("${steps.later.output}", "has no 'later'"),
        ("${params..n}", "cannot be read at '..n'"),
    ],
)
def test_references_that_lead_nowhere(text: str, reason: str) -> None:
    with pytest.raises(BadReference) as caught:
        resolve(text, SCOPE)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${params.n} > 2", True),
        ("${params.n} == 3 and ${params.on}", True),
        ("${params.n} == '3'", False),
        ("not ${params.on} or ${params.n} in [1, 2, 3]", True),
        ("1 < ${params.n} <= 3", True),
        ("${params.n} != -3", True),
        ("${steps.skipped.output} == null", True),
        ("${steps.fetch.status} == 'completed'", True),
        ("'a' in ${steps.fetch.output}", False),
        ("${params.url} not in ['https://b.example']", True),
        ("(true or ${params.missing}) and not false", True),
        ("${steps.skipped.output.count}", False),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert Condition(text).holds(SCOPE) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "1 +", "1 + 1", "__import__('os')", "${params.n}.real", "[x for x in [1]]"),
        *("lambda: 1", "_99", "print", "${params.n}[0]", "a := 1", "f'{1}'", "b'x'", "(" * 500),
        "x" * 3_000,
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Condition(text)


def test_what_cannot_be_compared_is_told() -> None:
    with pytest.raises(BadCondition, match="cannot be decided"):
        Condition("${params.url} > 3").holds(SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"${params.env}" == "prod"', True),
        ("'${params.env}' == 'prod'", True),
        ('"${params.env}-${params.n}" == "prod-3"', True),
        ('"a ${steps.fetch.output["a b"]}" == "a ä"', True),
        ('"${params.n}" == "3"', True),
        ('"${params.n}" == 3', False),
        ('"${params.on}" == "true" and ${params.on} == true', True),
        ('"it\'s ${params.env}" == "it\'s prod"', True),
        (r'"say \"${params.env}\"" == "say \"prod\""', True),
        ('"$${params.env}" != "prod" and "$${a}" == "$${a}"', True),
        ('"_r0. ${params.env}" == "_r0. prod"', True),
        ("1<${params.n}and${params.on}", True),
        ("${params.tricky} in [${params.tricky}]", True),
    ],
)
def test_conditions_with_references_in_quotes(text: str, expected: bool) -> None:
    scope = SCOPE | {"params": SCOPE["params"] | {"env": "prod", "tricky": "$${b} ${params.n} $$"}}
    assert Condition(text).holds(scope) is expected


@pytest.mark.parametrize("value", ["$${x}", "$$", "$${", "a $${params.n} $${y}", "${params.n}"])
def test_what_a_reference_stands_for_is_not_changed(value: str) -> None:
    scope = {"params": {"v": value}}
    assert resolve("${params.v}", scope) == value
    assert resolve("<${params.v}>", scope) == f"<{value}>"
    assert resolve(["${params.v}$${params.v}"], scope) == [value + "${params.v}"]


@pytest.mark.parametrize("text", ["-" * 1_900 + "1", "not " * 400 + "true", "[" * 90 + "]" * 90])
def test_a_condition_that_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(BadCondition):
        Condition(text)
