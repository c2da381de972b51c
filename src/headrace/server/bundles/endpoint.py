"""Calls the function of a bundle's route, and makes a response of what it returns."""

from __future__ import annotations

import inspect
from typing import Any, get_origin

import msgspec
from starlette.responses import Response

from headrace.bundles.file import File
from headrace.bundles.refusal import Refusal
from headrace.bundles.request import BundleRequest
from headrace.bundles.routes import Route
from headrace.errors import ArtifactNotFound, InvalidSetting
from headrace.server.http.body import read_json
from headrace.server.http.downloads import Download
from headrace.server.openapi.registry import JSON
from headrace.server.service import service_of

_REQUEST = "headrace_request"
Schema = dict[str, Any]


class Served:
    """A route's function as FastAPI calls it. FastAPI knows no Structs, so they are read here."""

    def __init__(self, route: Route, where: str) -> None:
        self._route = route
        function = route.endpoint
        if not inspect.iscoroutinefunction(function):
            raise InvalidSetting(f"{where}: {function!r} has to be an `async def`")
        try:
            signature = inspect.signature(function, eval_str=True)
        except NameError as error:
            raise InvalidSetting(
                f"{where}: {error}; its module has to import what its parameters are typed with, "
                "also when it runs"
            ) from error
        parameters = signature.parameters.values()
        self.body = next((each for each in parameters if _is_struct(each.annotation)), None)
        self.result: Any = signature.return_annotation
        self.endpoint = self._endpoint(signature)

    def _endpoint(self, signature: inspect.Signature) -> Any:
        """FastAPI gives the request to one parameter: ours, which the function's own one gets."""
        call, body, route = self._route.endpoint, self.body, self._route
        parameters = signature.parameters.values()
        wanted = [each.name for each in parameters if _is_request(each.annotation)]
        kept = [each for each in parameters if each is not body and each.name not in wanted]

        async def endpoint(**given: Any) -> Response:
            request: BundleRequest = given.pop(_REQUEST)
            given |= dict.fromkeys(wanted, request)
            if body is not None:
                kind, limit = body.annotation, route.limit
                given[body.name] = await read_json(request, kind, limit=limit)
            return await _response(request, await call(**given), route.status)

        keyword = inspect.Parameter.KEYWORD_ONLY
        ours = inspect.Parameter(_REQUEST, keyword, annotation=BundleRequest)
        shown = inspect.Signature([*(each.replace(kind=keyword) for each in kept), ours])
        endpoint.__signature__ = shown  # type: ignore[attr-defined]
        endpoint.__name__ = getattr(call, "__name__", "route")
        endpoint.__doc__ = call.__doc__
        return endpoint

    def described(self, bundle: str) -> dict[str, Any]:
        """Return what the API document says of the bodies."""
        found: dict[str, Any] = {}
        if self.body is not None:
            content = {JSON: {"schema": schema_of(self.body.annotation, bundle)}}
            found["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
        if self._described(self.result):
            content = {JSON: {"schema": schema_of(self.result, bundle)}}
            found["responses"] = {self._route.status: {"description": "Done.", "content": content}}
        return found

    def kinds(self) -> list[Any]:
        """Return the types that its schemas are made of."""
        found = [] if self.body is None else [self.body.annotation]
        return [*found, self.result] if self._described(self.result) else found

    @staticmethod
    def _described(kind: Any) -> bool:
        if kind in (inspect.Signature.empty, None, Any, File) or _is_response(kind):
            return False
        try:
            msgspec.json.schema_components([kind])
        except (TypeError, RuntimeError):
            return False
        return True


def schema_of(kind: Any, bundle: str) -> Schema:
    """Return the schema of a type, with references to those of its bundle."""
    (found,), _ = msgspec.json.schema_components([kind], ref_template=references(bundle))
    return found


def references(bundle: str) -> str:
    """Return how schemas of a bundle are referred to: two bundles may have types of one name."""
    return f"#/components/schemas/{bundle}.{{name}}"


async def _response(request: BundleRequest, result: Any, status: int) -> Response:
    if isinstance(result, Response):
        return result
    if isinstance(result, File):
        return await _download(request, result)
    if result is None:
        return Response(status_code=204 if status == 200 else status)
    encoded = service_of(request).answers.redactor.json(
        msgspec.json.encode(result, enc_hook=_plain)
    )
    return Response(encoded, status, media_type=JSON)


async def _download(request: BundleRequest, file: File) -> Response:
    store, artifact = request.app.artifact_store, file.artifact
    try:
        # Before the response begins: after that it could only break off.
        size = await store.size(artifact.path)
    except ArtifactNotFound:
        raise Refusal(
            404, f"the file {artifact.name!r} is not in the store", word="artifact-not-found"
        ) from None
    return await Download(request, store, artifact, size=size).response()


def _plain(value: Any) -> Any:
    """Pydantic models, which msgspec does not know."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a route cannot return a {type(value).__name__}; return plain data")
    return dump(mode="json")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_request(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(BundleRequest, kind) and kind is not object


def _is_response(kind: Any) -> bool:
    return isinstance(get_origin(kind) or kind, type) and issubclass(
        get_origin(kind) or kind, Response
    )
