"""Names of files and taxonomy paths as senders give them: cleaned, or refused. No I/O."""

from __future__ import annotations

import re
import unicodedata

from headrace import ValidationError

LONGEST_NAME = 200
LONGEST_PATH = 500
DEEPEST_PATH = 20

# Marks that turn the direction of writing: `fdp.exe` could pass for `exe.pdf`.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Marks that are not seen and mean nothing in a name.
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def clean_name(name: str) -> str:
    """Return the name of a file as it may be shown and stored: the last part of a path, in NFC,
    without marks that are not seen, at most 200 characters with its ending kept.

    Refused are names that nobody can mean: empty ones, `..` as a part, control characters, and
    marks that turn the direction of writing.
    """
    if _CONTROL.search(name):
        raise ValidationError(
            f"The file name {shown(name)} has a control character; rename the file."
        )
    _refuse_turning("file name", name, "rename the file without it")
    parts = _UNSEEN.sub("", unicodedata.normalize("NFC", _without_surrogates(name)))
    parts = parts.replace("\\", "/")
    if ".." in (part.strip() for part in parts.split("/")):
        raise ValidationError(
            f"The file name {shown(name)} leads out of its folder; rename the file."
        )
    last = " ".join(parts.rsplit("/", 1)[-1].split())
    if not last.strip(". "):
        raise ValidationError(f"The file name {shown(name)} is empty; give the file a name.")
    return _shortened(last)


def clean_path(path: str) -> str:
    """Return a taxonomy path such as `/hr/leave`: in NFC, without a slash at its end."""
    if _CONTROL.search(path) or _UNSEEN.search(path):
        raise ValidationError(
            f"The path {shown(path)} has a control character or a hidden mark; leave it out."
        )
    _refuse_turning("path", path, "leave it out")
    path = unicodedata.normalize("NFC", _without_surrogates(path)).strip()
    if not path.startswith("/"):
        raise ValidationError(f"The path {shown(path)} must begin with a slash, such as /hr/leave.")
    if path == "/":
        return path
    parts = [part.strip() for part in path.removesuffix("/")[1:].split("/")]
    if any(part in ("", ".", "..") or "\\" in part for part in parts):
        raise ValidationError(
            f"The path {shown(path)} has an empty part, a dot or a backslash; "
            "write it as /hr/leave."
        )
    cleaned = "/" + "/".join(parts)
    if len(cleaned) > LONGEST_PATH or len(parts) > DEEPEST_PATH:
        raise ValidationError(
            f"The path {shown(path)} is too long: at most {LONGEST_PATH} characters "
            f"and {DEEPEST_PATH} parts."
        )
    return cleaned


def is_within(path: str, folder: str) -> bool:
    """Return whether `folder` has `path`: `/hr` has itself and `/hr/leave`, not `/hrx`."""
    return folder in ("/", path) or path.startswith(folder + "/")


def shown(name: str) -> str:
    """Return a name in quotes, short and harmless, for errors and logs."""
    harmless = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name[:80])
    return f'"{harmless}{"…" if len(name) > 80 else ""}"'


def _refuse_turning(field: str, value: str, remedy: str) -> None:
    """Refuse what would be read otherwise than it is written."""
    if found := _TURNING.search(value):
        raise ValidationError(
            f"The {field} {shown(value)} has the mark U+{ord(found[0]):04X}, which turns the "
            f"direction of writing; {remedy}."
        )


def _shortened(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 16:
        stem, dot, ending = name, "", ""
    return stem[: LONGEST_NAME - len(ending) - 2].rstrip() + "…" + dot + ending


def _without_surrogates(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")
