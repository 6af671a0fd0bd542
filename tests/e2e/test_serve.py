"""`taxofit serve` as a process of its own: started, asked, reloaded, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest

httpx = pytest.importorskip("httpx", reason="the service's client in these tests")
pytest.importorskip("uvicorn", reason="the extra taxofit[serve] is not installed")

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60
# Bodies that are too long or have too many rows are refused as such.
SCHEMATHESIS = "checks.negative_data_rejection.expected-statuses = [400, 413, 415, 422]\n"


class Service:
    """A running service: its URL, its process, and the lines that it wrote to stderr."""

    def __init__(self, *arguments: object):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "taxofit", "serve", *map(str, arguments), "--port", "0"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.lines: list[str] = []
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"answers at (http://\S+)", line):
                self.url = found[1]
                break
        else:
            raise AssertionError(f"not started: {self.lines}")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        self.lines.extend(self.process.stderr)

    @property
    def address(self):
        parts = httpx.URL(self.url)
        return parts.host, parts.port

    def ready(self):
        return httpx.get(f"{self.url}/v1/health/ready").raise_for_status().json()

    def wait_for(self, condition):
        """Return what readiness says when it fulfils a condition."""
        end = time.monotonic() + WAIT_SECONDS
        while not condition(told := self.ready()):
            assert time.monotonic() < end, (told, self.lines)
            time.sleep(0.05)
        return told

    def stop(self, number=signal.SIGTERM):
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        """Return the exit code when the process has ended."""
        code = self.process.wait(WAIT_SECONDS)
        self._reader.join()
        self.process.stderr.close()
        return code


@contextlib.contextmanager
def serving(*arguments):
    service = Service(*arguments)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def other_model(taxofit, shop_csv, tmp_path_factory):
    """Fit another model on the same columns."""
    folder = tmp_path_factory.mktemp("other") / "model"
    done = taxofit("fit", shop_csv, "--text", "title", "--path", "category", "--model", folder,
                   "--method", "td-lr", "--C", "3")  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def exchange(folder, model):
    """Put a model into a folder as `taxofit fit` does: written beside it and renamed."""
    beside = folder.with_name("beside")
    shutil.copytree(model, beside)
    folder.rename(folder.with_name("old"))
    beside.rename(folder)
    shutil.rmtree(folder.with_name("old"))


def test_it_answers_as_predict_does_and_ends_with_0_when_told_to(
    taxofit, shop_model, shop_csv, tmp_path
):
    with serving(shop_model) as service:
        with shop_csv.open(encoding="utf-8") as file:
            rows = [{"title": row["title"]} for row in csv.DictReader(file)]
        answer = httpx.post(f"{service.url}/v1/predict", json={"rows": rows}).json()
        assert service.stop() == 0
    assert taxofit("predict", shop_model, shop_csv, "-o", tmp_path / "out.csv").returncode == 0
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [each["label"] for each in answer["predictions"]] == [row["label"] for row in written]
    assert [" > ".join(p["path"]) for p in answer["predictions"]] == [r["path"] for r in written]
    assert not [line for line in service.lines if "Traceback" in line]


def test_a_request_under_way_is_answered_before_it_ends(shop_model):
    body = b'{"rows": ["steel kettle"]}'
    head = (
        b"POST /v1/predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body)
    )
    with serving(shop_model) as service:
        with socket.create_connection(service.address, timeout=WAIT_SECONDS) as connection:
            connection.sendall(head + body[:10])
            metrics = f"{service.url}/v1/metrics"
            while "taxofit_requests_under_way 2.0" not in httpx.get(metrics).text:
                time.sleep(0.01)
            service.process.send_signal(signal.SIGTERM)
            while not is_refused(service.address):
                time.sleep(0.01)
            connection.sendall(body[10:])
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"Kettles"' in answer
        assert service.wait() == 0


def is_closed(connection):
    """Tell whether the other side closes, with or without an answer."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_connections_that_say_nothing_or_never_end_their_head_are_closed(shop_model):
    with serving(shop_model, "--timeout", "3") as service:
        open_connection = partial(socket.create_connection, service.address, WAIT_SECONDS)
        with open_connection() as silent, open_connection() as slow, open_connection() as endless:
            slow.sendall(b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\nx-slow: ")
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    endless.sendall(b"GET / HTTP/1.1\r\nx: " + b"x" * 2**16)
            assert is_closed(endless)
            assert is_closed(slow)
            assert is_closed(silent)
        with contextlib.closing(HTTPConnection(*service.address)) as patient:
            for pause in (4, 0):  # between requests a connection may rest for longer
                patient.request("GET", "/v1/health/live")
                used = patient.sock
                assert patient.getresponse().read() == b'{"status":"live"}'
                time.sleep(pause)
            assert patient.sock is used
        assert service.stop() == 0


def is_refused(address):
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return True
    return False


def test_no_request_fails_while_models_are_exchanged(shop_model, other_model, tmp_path):
    folder = shutil.copytree(shop_model, tmp_path / "live")
    seen, statuses, answered = set(), [], asyncio.Event()

    async def ask(client, url, is_over):
        while not is_over.is_set():
            answer = await client.post(f"{url}/v1/predict", json={"rows": ["steel kettle", "mug"]})
            statuses.append(answer.status_code)
            seen.add(answer.json()["model_version"])
            answered.set()

    async def scenario(service):
        is_over = asyncio.Event()
        async with httpx.AsyncClient(timeout=WAIT_SECONDS) as client:
            asking = [asyncio.create_task(ask(client, service.url, is_over)) for _ in range(8)]
            for number in range(6):
                version = (await asyncio.to_thread(service.ready))["model_version"]
                exchange(folder, (other_model, shop_model)[number % 2])
                service.process.send_signal(signal.SIGHUP)
                await asyncio.to_thread(
                    service.wait_for, lambda told, old=version: told["model_version"] != old
                )
                answered.clear()  # whoever asks again from here on gets the new version
                await answered.wait()
            is_over.set()
            await asyncio.gather(*asking)

    with serving(folder) as service:
        asyncio.run(scenario(service))
        assert service.stop() == 0
    assert set(statuses) == {200}
    assert len(seen) == 2
    assert sum("serving version" in line for line in service.lines) == 6


def test_a_damaged_model_is_told_and_the_old_one_goes_on(shop_model, other_model, tmp_path):
    folder = shutil.copytree(shop_model, tmp_path / "live")
    with serving(folder, "--reload-every", "0.1") as service:
        before = service.ready()
        broken = shutil.copytree(other_model, tmp_path / "broken")
        (broken / "weights.safetensors").write_bytes(b"damaged")
        exchange(folder, broken)
        told = service.wait_for(lambda told: told["reload_error"])
        assert told["model_version"] == before["model_version"]
        answer = httpx.post(f"{service.url}/v1/predict", json={"rows": ["steel kettle"]})
        assert answer.json()["predictions"][0]["label"] == "Kettles"
        exchange(folder, other_model)
        healed = service.wait_for(lambda told: told["reload_error"] is None)
        assert healed["model_version"] != before["model_version"]
        assert service.stop() == 0
    assert [line for line in service.lines if "still serving version" in line]


def test_an_address_for_others_is_served_with_a_warning_and_ctrl_c_ends_it(shop_model):
    with serving(shop_model, "--host", "0.0.0.0") as service:  # noqa: S104  (to be warned)
        assert service.stop(signal.SIGINT) == 130
    assert "0.0.0.0 can be reached from other machines, and anybody" in service.lines[0]
    assert service.lines[-1] == "error: interrupted\n"


def run_schemathesis(model, folder, n_examples):
    (folder / "schemathesis.toml").write_text(SCHEMATHESIS)
    limits = ("--max-rows", "5", "--max-text-length", "100", "--max-body-bytes", "10000")
    with serving(model, *limits) as service:
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run",
             f"{service.url}/v1/openapi.json", "--max-examples", str(n_examples), "--seed", "0"],
            cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert service.stop() == 0
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout
    assert not [line for line in service.lines if "Traceback" in line]


def test_it_keeps_the_promises_of_its_openapi(shop_model, tmp_path):
    pytest.importorskip("schemathesis")
    run_schemathesis(shop_model, tmp_path, 15)


@pytest.mark.slow
def test_it_keeps_the_promises_of_its_openapi_at_length(shop_model, tmp_path):
    pytest.importorskip("schemathesis")
    run_schemathesis(shop_model, tmp_path, 1000)


@pytest.mark.parametrize(
    ("n_clients", "seconds"), [(40, 2), pytest.param(200, 60, marks=pytest.mark.slow)]
)
def test_many_clients_at_once_see_no_error(shop_model, n_clients, seconds):
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "service_load.py", "--model", shop_model,
         "--clients", str(n_clients), "--seconds", str(seconds)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
