"""What the README, the docs and the examples show is what happens."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from taxofit import cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [code for kind, code in BLOCK.findall(text) if kind == language]


def figures(text: str) -> dict[str, float]:
    """Return the scores of a comparison table by method and position, in percent."""
    return {
        f"{line.split()[1]} {position}": float(score)
        for line in text.splitlines()
        for position, score in enumerate(re.findall(r"([0-9.]+)%", line))
    }


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102  (our own README)
    assert "removed: (" in capsys.readouterr().out
    assert (tmp_path / "shop-model" / "manifest.json").is_file()


def test_the_commands_and_the_table_of_the_readme_are_those_of_the_command_line(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    commands = [
        shlex.split(line, comments=True)[1:]
        for code in blocks("console")
        for line in code.splitlines()
        if line.startswith("taxofit ")
    ]
    shown_commands = ["demo", "info", "fit", "report", "predict", "explain", "flatten", "evaluate"]
    assert [command[0] for command in commands] == shown_commands
    for command in commands:
        assert cli.main(command) == 0, capsys.readouterr().err
        if command == ["demo"]:
            shown = capsys.readouterr().out
            (table,) = (code for code in blocks("text") if code.startswith("method"))
            assert figures(table) == pytest.approx(figures(shown), abs=1.0)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 1001


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda file: file.stem)
def test_an_example_runs_and_has_something_to_say(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 4


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target
