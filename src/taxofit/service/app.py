"""The application: routes over one model holder, its workers and its metrics."""

# No `from __future__ import annotations` here: the types of requests depend on the model, and are
# put in where FastAPI looks for them.

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response, Security
from fastapi.security import HTTPBearer

from taxofit._version import __version__
from taxofit.methods import flattening_from_json
from taxofit.service import schemas
from taxofit.service.answers import Explain, Predict, PredictTop
from taxofit.service.gate import Gate
from taxofit.service.metrics import MeasuredApp, ServiceMetrics
from taxofit.service.problems import add_problems, problem_responses
from taxofit.service.served_model import ModelHolder, ServedModel
from taxofit.service.settings import ServiceSettings
from taxofit.service.workers import Workers

__all__ = ["create_app"]

PREDICT, TOP, EXPLAIN = "/v1/predict", "/v1/topk", "/v1/explain"
LIVE = "/v1/health/live"
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
DESCRIPTION = "Predictions of a taxofit model. Errors are RFC 9457 problem details."


def create_app(holder: ModelHolder, settings: ServiceSettings) -> FastAPI:
    """Return the ASGI application that serves a model.

    Requests are checked against the columns of the model that is served now; a model that reads
    other columns is not taken on by a reload.
    """
    metrics = ServiceMetrics(holder)
    workers = Workers(
        settings.threads,
        max_rows=settings.max_rows,
        timeout_seconds=settings.timeout_seconds,
        observe=metrics.batch_rows.observe,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    app = FastAPI(
        title="taxofit",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Security(HTTPBearer(auto_error=False))] if settings.token else [],
        responses=problem_responses([401] if settings.token else []),
    )
    add_problems(app)
    _add_answers(app, holder, settings, workers)
    _add_health(app, holder, workers)
    _add_facts(app, holder, metrics)
    routes = [getattr(route, "path", "") for route in app.routes]
    bodies = [PREDICT, TOP, EXPLAIN]
    app.add_middleware(Gate, settings=settings, open_paths=[LIVE], body_paths=bodies)
    app.add_middleware(MeasuredApp, metrics=metrics, routes=routes)
    return app


def _add_answers(
    app: FastAPI, holder: ModelHolder, settings: ServiceSettings, workers: Workers
) -> None:
    async def predict(request: schemas.PredictRequest) -> schemas.Predictions:
        """Return label, path and probability of each row."""
        task = Predict(holder, request.min_confidence)
        version, predictions = _joined(await workers.work(task, request.rows))
        return schemas.Predictions(model_version=version, predictions=predictions)

    async def topk(request: schemas.TopRequest) -> schemas.TopPredictions:
        """Return the k most probable leaves of each row, best first."""
        answers = await workers.work(PredictTop(holder, request.k), request.rows)
        version, predictions = _joined(answers)
        return schemas.TopPredictions(model_version=version, predictions=predictions)

    async def explain(request: schemas.ExplainRequest) -> schemas.Explanation:
        """Return the walk of one row down the taxonomy, with the scores and words behind it."""
        task = Explain(holder, request.n_candidates, request.n_features)
        ((version, explanation),) = await workers.work(task, [request.row])
        return schemas.Explanation(model_version=version, **explanation)

    problems = problem_responses([400, 408, 413, 415, 422, 500, 503, 504])
    rows = holder.current.rows
    for path, endpoint in ((PREDICT, predict), (TOP, topk), (EXPLAIN, explain)):
        types = endpoint.__annotations__
        types["request"] = schemas.with_rows(types["request"], rows, settings)
        app.post(path, responses=problems, tags=["answers"])(endpoint)


def _add_health(app: FastAPI, holder: ModelHolder, workers: Workers) -> None:
    @app.get(LIVE, tags=["health"])
    async def live() -> schemas.Liveness:
        """Tell that the process answers at all; needs no token."""
        return schemas.Liveness(status="live")

    @app.get("/v1/health/ready", responses=problem_responses([500, 503, 504]), tags=["health"])
    async def ready() -> schemas.Readiness:
        """Tell that the model answers: an empty row goes through the queue like any other."""
        ((version, _),) = await workers.work(Predict(holder), [holder.current.rows.blank()])
        error = holder.reload_error
        return schemas.Readiness(status="ready", model_version=version, reload_error=error)


def _add_facts(app: FastAPI, holder: ModelHolder, metrics: ServiceMetrics) -> None:
    @app.get("/v1/model", tags=["facts"])
    async def model() -> schemas.ModelInfo:
        """Return what is served."""
        return _info(holder.current)

    text: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
    }

    @app.get("/v1/metrics", response_class=Response, responses=text, tags=["facts"])
    async def prometheus() -> Response:
        """Return requests, errors, latency, batch sizes and the model's version, for Prometheus."""
        return Response(metrics.to_text(), headers={"Content-Type": PROMETHEUS_TEXT})


def _joined(answers: list[tuple[str, Any]]) -> tuple[str, list[Any]]:
    """Return the version that answered all rows of a request, and the answers."""
    return answers[0][0], [answer for _, answer in answers]


def _info(model: ServedModel) -> schemas.ModelInfo:
    classifier = model.classifier
    method = flattening_from_json(model.manifest["settings"]["flattening"])
    return schemas.ModelInfo(
        name=model.name,
        version=model.version,
        taxofit_version=model.manifest.get("taxofit_version"),
        loaded_at=model.loaded_at,
        method=method if isinstance(method, str) else repr(method),
        C=classifier.C_,
        features=int(classifier.n_features_in_),
        columns=list(model.rows.columns),
        leaves=len(classifier.classes_),
        nodes=classifier.original_taxonomy_.n_nodes,
        nodes_kept=classifier.taxonomy_.n_nodes,
        depth=classifier.original_taxonomy_.depth,
    )
