"""`taxofit serve` where it cannot serve: one line and exit code 2."""

from __future__ import annotations

import socket
import sys

import pytest

from taxofit import cli


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield str(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "TAKEN"], "cannot listen on 127.0.0.1, port"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid, port 8080"),
        (["--port", "70000"], "port must be from 0 to 65535"),
        (["--max-rows", "0"], "max-rows must be at least 1"),
        (["--reload-every", "0"], "reload-seconds must be a positive number"),
        (["--token", ""], "the token must be ASCII text"),
    ],
)
def test_what_cannot_be_served_is_one_line(options, said, shop_model, taken_port, capsys):
    options = [taken_port if option == "TAKEN" else option for option in options]
    assert cli.main(["serve", str(shop_model), *options]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_it_helps_with_an_example(capsys):
    assert cli.main(["serve", "--help"]) == 0
    assert "Example: taxofit serve" in capsys.readouterr().out


def test_a_folder_that_is_no_model_is_one_line(tmp_path, capsys):
    assert cli.main(["serve", str(tmp_path)]) == 2
    assert "is not a taxofit model" in capsys.readouterr().err


def test_without_the_extra_its_name_is_told(shop_model, capsys, monkeypatch):
    for name in list(sys.modules):
        if name == "uvicorn" or name.startswith("taxofit.service."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.main(["serve", str(shop_model)]) == 2
    assert "needs uvicorn: install it with pip install 'taxofit[serve]'" in capsys.readouterr().err
