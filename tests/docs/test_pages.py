"""Every block of code in the documentation runs, in a folder of its page's own.

The README's blocks run in tests/e2e/test_documents.py, which also holds its table to account.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from tests.docs.page import Page
from tests.real_data import real_data

from taxofit import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
WAIT_SECONDS = 60
RUN = {"python", "console"}
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def with_code(pages):
    """Return a parameter for each page that has something to run."""
    parameters = []
    for file in pages:
        page = Page.read(file)
        if any(block.language in RUN for block in page.blocks):
            marks = [pytest.mark.slow] if page.is_slow else []
            name = str(file.relative_to(ROOT / "docs"))
            parameters.append(pytest.param(page, marks=marks, id=name))
    return parameters


@contextlib.contextmanager
def running(command, port):
    """Run a service until the end of a page."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen([sys.executable, "-m", "taxofit", *command], env=environment)
    try:
        end = time.monotonic() + WAIT_SECONDS
        while True:
            assert process.poll() is None
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run_commands(block, port, services, capsys):
    """Run each command of a block, or start it as a service."""
    for command in block.commands:
        if block.mark == "service":
            services.enter_context(running(command, port))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # as for a person, who sees a line on stderr
            assert cli.main(command) == 0, f"line {block.line}: {capsys.readouterr().err}"


@pytest.mark.parametrize("page", with_code(PAGES))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in page.needs:
        monkeypatch.setenv("TAXOFIT_DATA", str(real_data(name).parent))
    port = free_port()
    page = Page(page.text.replace("8080", str(port)))
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    with contextlib.ExitStack() as services:
        for block in page.blocks:
            if block.mark == "output":
                alike = doctest.OutputChecker().check_output(block.code, printed, LIKE)
                assert alike, f"line {block.line}: printed was\n{printed}"
            if block.is_skipped or block.language not in RUN:
                continue
            if block.language == "python":
                code = "\n" * block.line + block.code
                exec(compile(code, "page", "exec"), names)  # noqa: S102  (our own pages)
            else:
                run_commands(block, port, services, capsys)
            printed = capsys.readouterr().out


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for file in PAGES:
        assert f": {file.relative_to(ROOT / 'docs')}\n" in navigation, file


def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="`make docs` installs what builds the documentation")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    built = (tmp_path / "site" / "reference" / "classifier" / "index.html").read_text("utf-8")
    assert "predict_with_score" in built
    for page in pages:
        text = page.read_text("utf-8")
        assert "fonts.googleapis" not in text, f"{page} loads fonts from elsewhere"
        assert ":<code>" not in text, f"{page} shows a role of Sphinx"
