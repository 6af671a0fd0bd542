"""The scripts in benchmarks/ fit the library: all can be imported, two run small."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("script", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_scripts_find_what_they_import(script, monkeypatch):
    if script == "gpu_bank":
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.syspath_prepend(BENCHMARKS)
    assert importlib.import_module(script).__doc__


def test_embeddings_are_solved_beside_scikit_learn():
    done = run("embeddings.py", "--rows", "1800", "--d", "16", "--C", "1", "--nodes", "2")
    assert done.returncode == 0, done.stderr
    assert "| 16 | 1 |" in done.stdout


@pytest.mark.slow
def test_the_bank_of_a_gpu_is_checked_on_torch_for_the_cpu():
    pytest.importorskip("torch", reason="torch is not installed")
    done = run("gpu_bank.py", "--smoke", "--device", "torch-cpu")
    assert done.returncode == 0, done.stderr
