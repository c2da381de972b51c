"""Workflows as callers see them: what a run is given, as JSON schema."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.workflows.model import Param, Workflow

Schema = dict[str, Any]


def execute_schema(workflow: Workflow, fields: dict[str, Schema]) -> Schema:
    """The schema of a request to run this workflow. `fields` are those of any such request."""
    required = ["workflow_id"]
    if any(param.default is msgspec.UNSET for param in workflow.params.values()):
        required.append("params")
    return {
        "type": "object",
        "title": workflow.id,
        "properties": {
            **fields,
            "workflow_id": {"const": workflow.id},
            "version": {"enum": [workflow.version, None]},
            "params": _params(workflow),
        },
        "required": required,
        "additionalProperties": False,
    }


def _params(workflow: Workflow) -> Schema:
    if not workflow.params:
        return {"type": "object"}
    names = workflow.params.items()
    return {
        "type": "object",
        "properties": {name: _param(param) for name, param in names},
        "required": [name for name, param in names if param.default is msgspec.UNSET],
        "additionalProperties": False,
    }


def _param(param: Param) -> Schema:
    schema: Schema = {} if param.type == "any" else {"type": param.type}
    if param.description:
        schema["description"] = param.description
    if param.default is not msgspec.UNSET:
        schema["default"] = param.default
    return schema
