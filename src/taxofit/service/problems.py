"""Errors as RFC 9457 problem details: JSON that says what was wrong, never a traceback."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from taxofit.errors import TaxofitError
from taxofit.service.workers import NotBegunError, NotEndedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["Problem", "add_problems", "problem_response", "problem_responses"]

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
N_ERRORS_SHOWN = 20
SERVER_ERROR = "Something went wrong here; the log of the service says what."


class ProblemPart(BaseModel):
    """One thing that is wrong with a request, and where."""

    detail: str
    pointer: str = Field(description="JSON pointer into the request body.", examples=["#/rows/3"])


class Problem(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "The request is not as the schema says.",
                    "errors": [{"detail": "Field required", "pointer": "#/rows/0/title"}],
                }
            ]
        }
    )
    title: str
    status: int
    detail: str
    errors: list[ProblemPart] | None = None


def problem_response(
    status: int,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    errors: list[dict[str, str]] | None = None,
) -> JSONResponse:
    """Return a response that tells a problem.

    Examples
    --------
    >>> problem_response(404, "There is nothing here.").body
    b'{"title":"Not Found","status":404,"detail":"There is nothing here."}'
    """
    content: dict[str, Any] = {"title": HTTPStatus(status).phrase, "status": status}
    content["detail"] = detail
    if errors is not None:
        content["errors"] = errors
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS), **(headers or {})}
    return JSONResponse(content, status, headers=headers, media_type=MEDIA_TYPE)


def problem_responses(statuses: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """Return the part of an OpenAPI operation that says it may answer with these problems."""
    schema = {"$ref": "#/components/schemas/Problem"}
    described = {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status in statuses
    }
    retry = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
    if HTTPStatus.SERVICE_UNAVAILABLE in described:
        described[HTTPStatus.SERVICE_UNAVAILABLE]["headers"] = {"Retry-After": retry}
    return {int(status): response for status, response in described.items()}


def add_problems(app: FastAPI) -> None:
    """Let every error of an application come out as a problem, and its OpenAPI know them."""
    for kind, handler in (
        (HTTPException, _of_http),
        (RequestValidationError, _of_validation),
        (TaxofitError, _of_rows),
        (NotBegunError, _of_waiting),
        (NotEndedError, _of_working),
        (Exception, _of_surprise),
    ):
        app.add_exception_handler(kind, handler)
    _describe_problems(app)


def _describe_problems(app: FastAPI) -> None:
    """Add the schema of problems to an application's OpenAPI.

    FastAPI would add it by itself, but as plain ``application/json``.
    """
    make_openapi = app.openapi
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    described = {**schema.pop("$defs"), "Problem": schema}

    def openapi() -> dict[str, Any]:
        document = make_openapi()
        document["components"]["schemas"].update(described)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _of_http(_: Request, error: Any) -> JSONResponse:
    return problem_response(error.status_code, str(error.detail), headers=error.headers)


def _of_validation(_: Request, error: Any) -> JSONResponse:
    """Return what pydantic found: 400 for no JSON at all, 413 for too many rows, else 422."""
    found = error.errors()
    kinds = {(part["type"], part["loc"]) for part in found}
    if any(kind == "json_invalid" for kind, _ in kinds):
        return problem_response(400, "The body is not JSON.")
    if ("too_long", ("body", "rows")) in kinds:
        return problem_response(413, "There are too many rows; send several requests.")
    parts = [
        {"detail": part["msg"], "pointer": _pointer(part, error.body)}
        for part in found[:N_ERRORS_SHOWN]
    ]
    return problem_response(422, "The request is not as the schema says.", errors=parts)


def _of_rows(_: Request, error: Any) -> JSONResponse:
    return problem_response(422, str(error))


def _of_waiting(_: Request, __: Any) -> JSONResponse:
    return problem_response(503, "The service is too busy to begin with this request.")


def _of_working(_: Request, __: Any) -> JSONResponse:
    return problem_response(504, "The request took too long; send fewer rows at a time.")


def _of_surprise(_: Request, __: Any) -> JSONResponse:
    return problem_response(500, SERVER_ERROR)


def _pointer(part: Mapping[str, Any], body: Any) -> str:
    """Return where in a body something is wrong, as a JSON pointer in a URI fragment.

    pydantic also names the member of a union that it tried; what is not in the body is left out,
    but for the name of a field that is missing.
    """
    *inner, last = part["loc"][1:] or (None,)
    steps = []
    for step in (*inner, last):
        if isinstance(body, (dict, list)) and _has(body, step):
            steps.append(step)
            body = body[step]
    if part["type"] == "missing" and last is not None:
        steps.append(last)
    return "#" + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _has(body: dict[Any, Any] | list[Any], step: Any) -> bool:
    return step in body if isinstance(body, dict) else isinstance(step, int)
