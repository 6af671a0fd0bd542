"""What has numba compile, and how often, by count: a time is for benchmarks."""

import json
import os
import subprocess
import sys

import pytest

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue

LISTEN = """
import collections, json, sys
from numba.core import event

compiled = collections.defaultdict(list)


class Listener(event.Listener):
    def on_start(self, started):
        function = started.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__name__}"
        compiled[name].append(str(started.data["args"]))

    def on_end(self, _):
        pass


event.register("numba:compile", Listener())
"""
FIRST_FIT = """
from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue

shop = make_shop_catalogue(2000)
TaxonomyClassifier(shop.taxonomy, encoder="words").fit(shop.texts, shop.y)
"""
COMMAND = """
from taxofit.cli import main

try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""


@pytest.fixture
def compiled_by(tmp_path):
    """Run Python on a machine where nothing is compiled yet; tell what for, name by name."""

    def run(code, *arguments):
        script = f"{LISTEN}{code}\nprint(json.dumps(compiled), file=sys.stderr)"
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stderr.splitlines()[-1])

    return run


def test_a_first_fit_compiles_no_loop_twice(compiled_by):
    """A literal among a call's arguments is enough to have a loop compiled once more."""
    compiled = compiled_by(FIRST_FIT)
    loops = {name: found for name, found in compiled.items() if name.startswith("taxofit.")}
    del loops["taxofit.bank.rank_loops.place_of"]  # it searches indices of both sizes
    assert "taxofit.bank.lane_queue.run_block" in loops
    assert len(loops) > 40
    assert not {name: found for name, found in loops.items() if len(found) > 1}


def test_commands_that_need_no_solver_compile_nothing(compiled_by, tmp_path):
    shop = make_shop_catalogue(500)
    classifier = TaxonomyClassifier(shop.taxonomy, C=1.0, encoder="words")
    classifier.fit(shop.texts, shop.y).save(tmp_path / "model")
    table = tmp_path / "rows.csv"
    table.write_text("text,category\nsteel kettle,Kitchen\n", encoding="utf-8")
    assert compiled_by(COMMAND, "--version") == {}
    assert compiled_by(COMMAND, "fit", "--help") == {}
    assert compiled_by(COMMAND, "info", str(tmp_path / "model")) == {}
    assert compiled_by(COMMAND, "info", str(table)) == {}
