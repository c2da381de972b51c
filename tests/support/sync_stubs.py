"""Makes the stubs of the blocking classes: `python -m tests.support.sync_stubs`.

At run time `headrace.loops.loop_thread.blocking` makes the methods. Type checkers cannot see that,
so the same methods are written down here, from the source of the classes that have the coroutines.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import headrace.admin.artifacts
import headrace.admin.sync_artifacts
import headrace.app
import headrace.client.client
import headrace.client.sync
import headrace.sync
from headrace.task.registry import Registering

HEADER = "# Made by `python -m tests.support.sync_stubs`; do not edit.\n\n"
RUFF = Path(sys.executable).parent / "ruff"
SHARED = "_Verbs"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Blocking(NamedTuple):
    """A module with a blocking class, the class behind it, and methods that are passed on: by name,
    or all of a class, which the stub inherits from.
    """

    module: ModuleType
    kind: str
    source: type
    also: tuple[str, ...]
    inherits: tuple[type, ...] = ()

    @property
    def stub(self) -> Path:
        """Where the stub is."""
        return Path(str(self.module.__file__)).with_suffix(".pyi")


ALL = (
    Blocking(headrace.client.sync, "SyncClient", headrace.client.client.Client, ("job",)),
    Blocking(
        headrace.admin.sync_artifacts,
        "SyncArtifacts",
        headrace.admin.artifacts.AppArtifacts,
        (),
    ),
    Blocking(
        headrace.sync,
        "App",
        headrace.app.App,
        ("schedule", "add_schedule", "alert"),
        (Registering,),
    ),
)


class Names:
    """The imports that a stub needs, from where its parts were defined."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.lines: dict[str, None] = {}
        self._bound: set[str] = set()

    def need(self, part: ast.AST, module: str) -> None:
        """Import every name in an annotation or a default as its module does."""
        for node in ast.walk(part):
            if isinstance(node, ast.Name):
                self._need(node.id, module)

    def _need(self, name: str, module: str) -> None:
        if name in self._bound:
            return
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom | ast.Import):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        new = (
                            ast.ImportFrom(node.module, [alias], node.level)
                            if isinstance(node, ast.ImportFrom)
                            else ast.Import([alias])
                        )
                        self.lines[ast.unparse(new)] = None
                        self._bound.add(name)
                        return
        if module != self._own and hasattr(importlib.import_module(module), name):
            self.lines[f"from {module} import {name}"] = None
            self._bound.add(name)


class _Builtin(ast.NodeTransformer):
    """`list` in a class that has a method of that name."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "list":
            return ast.Attribute(ast.Name("builtins"), "list")
        return node


def _declared(function: Function, names: Names, module: str) -> ast.FunctionDef:
    """The function without its body; a coroutine blocks, and a stream is an iterator."""
    returns = function.returns
    match returns:
        case ast.Subscript(value=ast.Name(id="AsyncGenerator"), slice=ast.Tuple(elts=[item, _])):
            names.lines["from collections.abc import Iterator"] = None
            returns = ast.Subscript(ast.Name("Iterator"), item)
    decorators: list[ast.expr] = [
        each
        for each in function.decorator_list
        if isinstance(each, ast.Name) and each.id in ("overload", "property")
    ]
    made = ast.FunctionDef(
        function.name, function.args, [ast.Expr(ast.Constant(...))], decorators, returns
    )
    names.need(made, module)
    return ast.fix_missing_locations(_Builtin().visit(made))  # type: ignore[no-any-return]


def _class_body(kind: type) -> list[ast.stmt]:
    [made] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(made, ast.ClassDef)
    return made.body


def _is_overload(function: Function) -> bool:
    return "overload" in [ast.unparse(each) for each in function.decorator_list]


def _members(blocking: Blocking, names: Names) -> list[ast.stmt]:
    module = blocking.module.__name__
    made: list[ast.stmt] = []
    own: set[str] = set()
    for node in _class_body(getattr(blocking.module, blocking.kind)):
        if isinstance(node, ast.AnnAssign):
            names.need(node, module)
            made.append(node)
        elif isinstance(node, Function) and (
            not node.name.startswith("_") or node.name.startswith("__") or node.name == "_run"
        ):
            if node.name in own and not _is_overload(node):
                continue  # what overloads stand for
            own.add(node.name)
            made.append(_declared(node, names, module))
    for kind in blocking.source.__mro__:
        if kind.__module__.partition(".")[0] != "headrace" or kind in blocking.inherits:
            continue
        found: set[str] = set()
        for node in _class_body(kind):
            if not isinstance(node, Function) or node.name.startswith("_") or node.name in own:
                continue
            if node.name in found and not _is_overload(node):
                continue  # what overloads stand for
            if isinstance(node, ast.AsyncFunctionDef) or node.name in blocking.also:
                found.add(node.name)
                made.append(_declared(node, names, kind.__module__))
        own |= found
    return made


def _shared() -> list[str]:
    """The verbs that all blocking classes have alike."""
    every = [[ast.unparse(each) for each in _members(one, Names(""))] for one in ALL]
    return [each for each in every[0] if all(each in others for others in every)]


def stub(blocking: Blocking) -> str:
    """The stub of a module. What all have alike is in a base class, in the stub of the last."""
    names = Names(blocking.module.__name__)
    names.lines["import builtins"] = None
    body: list[ast.stmt] = []
    shared, home = _shared(), ALL[-1].module.__name__
    if blocking.module.__name__ != home:
        names.lines[f"from {home} import {SHARED}"] = None
    for kind in blocking.inherits:
        names.lines[f"from {kind.__module__} import {kind.__name__}"] = None
    tree = ast.parse(inspect.getsource(blocking.module))
    for node in tree.body:
        match node:
            case ast.ClassDef(name=blocking.kind):
                members = _members(blocking, names)
                own = [each for each in members if ast.unparse(each) not in shared]
                if blocking.module.__name__ == home:
                    alike = [each for each in members if ast.unparse(each) in shared]
                    body.append(ast.ClassDef(SHARED, [], [], alike, []))
                bases = [SHARED, *(each.__name__ for each in blocking.inherits)]
                body.append(
                    ast.ClassDef(blocking.kind, [ast.Name(each) for each in bases], [], own, [])
                )
            case ast.FunctionDef():
                body.append(_declared(node, names, blocking.module.__name__))
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
                names.lines["from typing import TypeVar"] = None
                body.append(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
                body.append(ast.AnnAssign(ast.Name(name), ast.Name("str"), None, 1))
            case ast.Assign():
                body.append(node)
    text = "\n".join([*sorted(names.lines), "", *(ast.unparse(_fixed(node)) for node in body)])
    fixed = _ruff("check", "--select=I,F401", "--fix", "--quiet", text=text)
    return HEADER + _ruff("format", text=fixed)


def _fixed(node: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(node)


def _ruff(*command: str, text: str) -> str:
    done = subprocess.run(
        [str(RUFF), *command, "--stdin-filename=stub.pyi", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    for each in ALL:
        each.stub.write_text(stub(each))
