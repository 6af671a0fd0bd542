"""What a first fit on a fresh install has numba compile, by count: a time is for benchmarks."""

import json
import os
import subprocess
import sys

FIRST_FIT = """
import collections, json
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
from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue

shop = make_shop_catalogue(2000)
TaxonomyClassifier(shop.taxonomy, encoder="words").fit(shop.texts, shop.y)
print(json.dumps(compiled))
"""


def test_a_first_fit_compiles_no_loop_of_the_solver_twice(tmp_path):
    """A literal among a call's arguments is enough to have a loop compiled once more."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], env=environment, capture_output=True, check=True
    )
    compiled = json.loads(done.stdout)
    loops = {name: found for name, found in compiled.items() if name.startswith("taxofit.")}
    del loops["taxofit.bank.rank_loops.place_of"]  # it searches indices of both sizes
    assert "taxofit.bank.lane_queue.run_block" in loops
    assert len(loops) > 40
    assert not {name: found for name, found in loops.items() if len(found) > 1}
