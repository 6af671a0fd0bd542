from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi", reason="the extra taxofit[serve] is not installed")

import httpx

from taxofit.service.app import create_app
from taxofit.service.served_model import ModelHolder
from taxofit.service.settings import ServiceSettings
from taxofit.workflow.options import FitOptions
from taxofit.workflow.training import fit_file

SHOP = {
    "Home > Kettles": ("steel kettle", "whistling kettle", "electric kettle"),
    "Home > Mugs": ("stoneware mug", "travel mug", "enamel mug"),
    "Pets > Fish": ("guppy food", "fish tank", "aquarium pump"),
    "Pets > Dogs": ("dog lead", "puppy bowl", "dog biscuits"),
}
WORDS = ("small", "large", "blue", "red")


def fit_shop(folder, *, C="10", text=("title", "Made of"), separator=" > "):
    """Fit a model on 48 products, with two columns of texts, one of numbers, and paths."""
    file = folder.with_suffix(".csv")
    lines = [
        f"{title},{word},{len(title)},{path}"
        for path, titles in SHOP.items()
        for title in titles
        for word in WORDS
    ]
    file.write_text("\n".join(["title,Made of,length,category", *lines]) + "\n", encoding="utf-8")
    options = FitOptions(text=text, label_path="category", method="td-lr", C=C, separator=separator)
    fit_file(str(file), str(folder), options)
    return folder


@pytest.fixture(scope="session")
def shop_model(tmp_path_factory):
    return fit_shop(tmp_path_factory.mktemp("service") / "shop")


class Client:
    """An HTTP client of an application in this process, for tests that are not coroutines."""

    def __init__(self, holder, settings):
        self.holder = holder
        transport = httpx.ASGITransport(create_app(holder, settings), raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://service")
        self._loop = asyncio.Runner()

    def request(self, method, path, **parts):
        return self._loop.run(self._http.request(method, path, **parts))

    def get(self, path, **parts):
        return self.request("GET", path, **parts)

    def post(self, path, **parts):
        return self.request("POST", path, **parts)

    def close(self):
        self._loop.run(self._http.aclose())
        self._loop.close()


@pytest.fixture
def client_of():
    """Open clients of a service of their own, closed when the test is over."""
    opened = []

    def open_client(model, **settings):
        opened.append(Client(ModelHolder(str(model)), ServiceSettings(**settings)))
        return opened[-1]

    yield open_client
    for client in opened:
        client.close()


@pytest.fixture
def client(client_of, shop_model):
    return client_of(shop_model)
