"""Counts and times for Prometheus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from prometheus_client.metrics_core import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from taxofit.service.served_model import ModelHolder

__all__ = ["MeasuredApp", "ServiceMetrics"]

LATENCY_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
BATCH_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
SERVER_ERROR = 500
OTHER_ROUTE = "other"  # or anybody could fill the memory with labels


class ServiceMetrics:
    """What happened so far; one registry for each service, none for the whole process."""

    def __init__(self, holder: ModelHolder) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_ModelCollector(holder))
        ProcessCollector(registry=self._registry)  # CPU, memory and open files
        self.requests = Counter(
            "taxofit_requests",
            "Requests answered, by route and status.",
            ["route", "status"],
            registry=self._registry,
        )
        self.latency = Histogram(
            "taxofit_request_seconds",
            "From the head of a request to the end of its answer.",
            ["route"],
            buckets=LATENCY_SECONDS,
            registry=self._registry,
        )
        self.batch_rows = Histogram(
            "taxofit_batch_rows",
            "Rows that went through the model together.",
            buckets=BATCH_ROWS,
            registry=self._registry,
        )
        self.under_way = Gauge(
            "taxofit_requests_under_way", "Requests not yet answered.", registry=self._registry
        )

    def to_text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)


class _ModelCollector:
    """The model and its reloads, looked up when they are asked for."""

    def __init__(self, holder: ModelHolder) -> None:
        self._holder = holder

    def collect(self) -> Iterator[Metric]:
        model = self._holder.current
        info = {"name": model.name, "version": model.version}
        yield InfoMetricFamily("taxofit_model", "The model that is served.", value=info)
        yield GaugeMetricFamily(
            "taxofit_model_loaded_timestamp_seconds",
            "When it was loaded.",
            value=model.loaded_at.timestamp(),
        )
        reloads = CounterMetricFamily(
            "taxofit_model_reloads", "Exchanges of the model.", labels=["outcome"]
        )
        reloads.add_metric(["done"], self._holder.n_reloads)
        reloads.add_metric(["failed"], self._holder.n_failures)
        yield reloads


class MeasuredApp:
    """An ASGI application whose requests are counted and timed."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, routes: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an ASGI application's one method."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = SERVER_ERROR

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            route = scope["path"] if scope["path"] in self._routes else OTHER_ROUTE
            self._metrics.under_way.dec()
            self._metrics.requests.labels(route, status).inc()
            self._metrics.latency.labels(route).observe(time.perf_counter() - started)
