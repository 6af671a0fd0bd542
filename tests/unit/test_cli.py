from __future__ import annotations

import io
import json
import time
import warnings

import pytest

from taxofit import cli, terminal
from taxofit.errors import DataError


@pytest.fixture(autouse=True)
def _warnings_are_shown_as_before(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


@pytest.mark.parametrize(
    "command",
    [
        "fit",
        "flatten",
        "predict",
        "explain",
        "evaluate",
        "info",
        "report",
        "serve",
        "demo",
        "reproduce",
    ],
)
def test_every_command_helps_with_an_example(command, capsys):
    assert cli.main([command, "--help"]) == 0
    assert f"Example: taxofit {command}" in capsys.readouterr().out


def test_version_is_printed(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("taxofit ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit"], "Missing argument 'FILE'"),
        (
            ["fit", "absent.csv", "--text", "t", "--path", "p", "--model", "m"],
            "no such file: absent",
        ),
        (
            ["fit", "absent.csv", "--text", "t", "--path", "p", "--model", "m", "--seed", "x"],
            "seed",
        ),
        (["fit", "a.csv", "--model", "m", "--C", "0"], "C must be a positive number"),
        (["fit", "a.csv", "--model", "m"], "no such file: a.csv"),
        (["fit", "a.xlsx", "--model", "m"], "choose File > Save As > CSV"),
        (["flatten", "a.csv", "-o", "a.doc"], "a.doc: end the name with one of .json"),
        (["evaluate", "m", "a.csv", "--train", "b.csv"], "--train goes with --taxonomy"),
        (["predict", "absent", "absent.csv"], "absent is not a taxofit model"),
        (["explain", "absent", "a text"], "absent is not a taxofit model"),
        (["explain", "absent", "a text", "--candidates", "0"], "candidates"),
        (["explain", "absent", "absent.csv", "--row", "0"], "rows are counted from 1"),
        (["evaluate", "absent", "absent.csv"], "absent is not a taxofit model"),
        (["info", "absent.csv"], "no such file: absent.csv"),
        (["demo", "--rows", "1"], "n_rows must be at least"),
        (["reproduce", "clf", "--out", "o"], "neither a folder nor one of 20news, clef"),
        (["reproduce", "clef", "--out", "o", "--runs", "0"], "n_runs must be at least 1"),
        (["reproduce", "clef", "--out", "o", "--methods", "svm"], "unknown method 'svm'"),
        (["reproduce", "clef", "--out", "o", "--data", "."], "clef is expected in the folder"),
        (["--colour"], "No such option: --colour"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_line(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert said in line
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


def test_interruption_is_exit_code_130_and_one_line(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("taxofit.workflow.demo.run_demo", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_file_that_cannot_be_written_is_one_line(capsys, monkeypatch):
    def fail(*_, **__):
        raise PermissionError(13, "Permission denied", "out.csv")

    monkeypatch.setattr("taxofit.workflow.demo.run_demo", fail)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "error: out.csv: Permission denied\n"


def test_a_mistake_of_ours_is_not_dressed_up_as_bad_input(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("taxofit.workflow.demo.run_demo", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["demo"])


def test_every_view_is_where_it_is_said_to_be():
    assert terminal.__all__ == sorted(terminal._HOME)
    assert all(callable(getattr(terminal, name)) for name in terminal.__all__)


def test_messages_stay_on_one_line_and_do_not_steer_the_terminal(capsys):
    terminal.show_error(DataError("label 'a\nb\x1b[2J[bold]'"))
    assert capsys.readouterr().err == "error: label 'a b�[2J[bold]'\n"


def test_labels_with_markup_are_shown_as_they_are(capsys):
    terminal.show_description({"kind": "model", "removed": ["[red]sale[/red]"]}, "m")
    assert "[red]sale[/red]" in capsys.readouterr().out


def test_numpy_numbers_are_json(capsys):
    import numpy as np

    terminal.show_json({"C": np.float32(0.5), "rows": np.int64(3)})
    assert json.loads(capsys.readouterr().out) == {"C": 0.5, "rows": 3}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_drawn_on_a_terminal_and_gone_afterwards(monkeypatch):
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    with terminal.progress_bars() as progress:
        progress("Reading", 0, 0)
        progress("Fitting nodes", 3, 1000)
        progress("Predicting", 12_000, 0)
    assert "Predicting" in stderr.getvalue()
    with terminal.progress_bars(is_shown=False) as progress:
        assert progress is None


def test_progress_tells_that_numba_compiles_while_it_does(monkeypatch):
    import numba
    from numba.core import event

    from taxofit.compiling import is_compiling

    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)

    class Wait(event.Listener):
        """Compile for as long as it takes the bars to be drawn again, ten seconds at most."""

        def on_start(self, _):
            assert is_compiling()
            deadline = time.monotonic() + 10
            while "compiling" not in stderr.getvalue() and time.monotonic() < deadline:
                time.sleep(0.02)

        def on_end(self, _):
            pass

    with terminal.progress_bars() as progress:
        progress("Fitting nodes", 3, 10)
        time.sleep(0.3)
        assert "compiling" not in stderr.getvalue()
        with event.install_listener("numba:compile", Wait()):
            numba.njit(lambda x: x + 1)(1)
    assert "compiling, once on a machine" in stderr.getvalue()
    assert not is_compiling()


def test_progress_is_silent_where_nobody_looks():
    with terminal.progress_bars() as progress:
        assert progress is None
