"""The settings of a bundle: from code, the environment, `headrace.toml`, then defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from headrace.bundles.bundle import URL, Bundle
from headrace.config import FILE, is_of_kubernetes, read_file
from headrace.errors import HeadraceError, InvalidSetting
from headrace.installed_bundles import bundle_of, variable_prefix
from headrace.suggest import unknown

_SECRET = re.compile(r"(?:^|_)(?:api_?key|key|password|secret|token)$")


def load_settings(
    bundle: Bundle,
    given: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[Any, str | None]:
    """Return the settings of a bundle, and the URL of its tables if one is set. Raises
    `InvalidSetting`, which names the nearest setting for an unknown one.
    """
    fields = _fields(bundle)
    path = (folder or Path.cwd()) / FILE
    values: dict[str, Any] = {}
    table = read_file(path).get(bundle.name, {})
    if not isinstance(table, dict):
        raise InvalidSetting(f"{bundle.name} in {path} must be a table: [{bundle.name}]")
    for name, value in table.items():
        if name not in fields:
            raise InvalidSetting(f"{path}, [{bundle.name}]: {unknown('setting', name, fields)}")
        values[name] = _convert(fields, name, value, f"{name} in {path}", strict=True)
    prefix = variable_prefix(bundle.name)
    known = {prefix + name.upper(): name for name in fields}
    for variable, text in (os.environ if environment is None else environment).items():
        if bundle_of(variable) != bundle.name or is_of_kubernetes(variable, text, known):
            continue
        if variable not in known:
            raise InvalidSetting(unknown("environment variable", variable, known))
        if text != "":
            name = known[variable]
            values[name] = _convert(fields, name, _from_text(fields[name], text), variable)
    for name, value in (given or {}).items():
        if name not in fields:
            raise InvalidSetting(f'bundle "{bundle.name}": {unknown("setting", name, fields)}')
        if value is not None:
            values[name] = _convert(fields, name, value, name, strict=True)
    url = values.pop(URL, None)
    return _make(bundle, values), url


def shown_fields(bundle: Bundle) -> dict[str, Any]:
    """Return the environment variable of each setting, with its default as text; None if it has to
    be set.
    """
    prefix = variable_prefix(bundle.name)
    shown: dict[str, Any] = {}
    for name, field in _fields(bundle).items():
        if name == URL:
            continue
        default: Any = None
        if field.default is not msgspec.NODEFAULT:
            default = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        secret = default is not None and default != "" and _SECRET.search(name)
        shown[prefix + name.upper()] = "***" if secret else _plain(default)
    if bundle.tables is not None:
        shown[f"{prefix}URL"] = None
    return shown


class _UrlField:
    type = str


def _fields(bundle: Bundle) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if bundle.settings is not None:
        found = {field.name: field for field in msgspec.structs.fields(bundle.settings)}
    if bundle.tables is not None:
        found[URL] = _UrlField
    return found


def _from_text(field: Any, text: str) -> Any:
    """Text from the environment: lists as `a,b`, lists and tables also as JSON."""
    kind = msgspec.inspect.type_info(field.type)
    members = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    many = (
        msgspec.inspect.ListType,
        msgspec.inspect.SetType,
        msgspec.inspect.FrozenSetType,
        msgspec.inspect.VarTupleType,
    )
    if any(isinstance(each, msgspec.inspect.StrType) for each in members):
        return text
    if text[:1] in "[{":
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    if any(isinstance(each, many) for each in members):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _convert(
    fields: Mapping[str, Any], name: str, value: Any, shown: str, *, strict: bool = False
) -> Any:
    try:
        return msgspec.convert(value, fields[name].type, strict=strict, dec_hook=_custom)
    except msgspec.ValidationError as error:
        given = "a value" if _SECRET.search(name) or name == URL else f"the value {value!r}"
        raise InvalidSetting(f"{shown} has {given} that cannot be used: {error}") from None


def _custom(kind: Any, value: Any) -> Any:
    """Paths and other plain classes that take one text; values from code as they are."""
    return value if isinstance(value, kind) else kind(value)


def _make(bundle: Bundle, values: dict[str, Any]) -> Any:
    if bundle.settings is None:
        return None
    missing = [
        field.name
        for field in msgspec.structs.fields(bundle.settings)
        if field.required and field.name not in values
    ]
    if missing:
        prefix = variable_prefix(bundle.name)
        raise InvalidSetting(
            f'bundle "{bundle.name}": {missing[0]} has to be set; set {prefix}{missing[0].upper()},'
            f" or {missing[0]} below [{bundle.name}] in {FILE}"
        )
    try:
        return bundle.settings(**values)
    except HeadraceError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidSetting(f'bundle "{bundle.name}": {error}') from error


def _plain(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value, enc_hook=str)
    except (TypeError, ValueError):
        return str(value)
