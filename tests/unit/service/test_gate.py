"""Requests beyond the limit, and bodies that do not come, seen from inside the event loop."""

from __future__ import annotations

import asyncio

import pytest

from taxofit.service.app import create_app
from taxofit.service.served_model import ModelHolder
from taxofit.service.settings import ServiceSettings

BODY = b'{"rows": ["steel kettle"]}'


async def ask(app, receive):
    """Send one POST with a body that comes from ``receive``; return status, headers and body."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/predict",
        "raw_path": b"/v1/predict",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:])


@pytest.fixture
def app_of(shop_model):
    holder = ModelHolder(str(shop_model))
    return lambda **settings: create_app(holder, ServiceSettings(**settings))


def body_after(event=None):
    async def receive():
        if event is not None:
            await event.wait()
        return {"type": "http.request", "body": BODY, "more_body": False}

    return receive


def test_more_requests_than_allowed_are_sent_away_and_told_when_to_come_back(app_of):
    async def scenario():
        app = app_of(max_requests=2)
        arrives = asyncio.Event()
        inside = [asyncio.create_task(ask(app, body_after(arrives))) for _ in range(2)]
        await asyncio.sleep(0)
        status, headers, body = await ask(app, body_after())
        assert (status, headers["retry-after"]) == (503, "1")
        assert b"try again" in body
        arrives.set()
        assert [status for status, _, _ in await asyncio.gather(*inside)] == [200, 200]
        assert (await ask(app, body_after()))[0] == 200

    asyncio.run(scenario())


def test_a_body_that_does_not_arrive_is_408_and_frees_its_place(app_of):
    async def scenario():
        app = app_of(max_requests=1, timeout_seconds=0.05)
        assert (await ask(app, body_after(asyncio.Event())))[0] == 408
        assert (await ask(app, body_after()))[0] in {200, 503}

    asyncio.run(scenario())
