"""Seconds that numba compiles for a first fit and a first prediction, with an empty cache.

    python benchmarks/compiling.py

Texts of the demo's shop, everything automatic; every round is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time


def compile_seconds():
    """Fit and predict texts in this process; return the seconds spent compiling for each."""
    from numba.core import event

    class Clock(event.Listener):
        """Counts the outermost of nested compilations."""

        depth, began, seconds = 0, 0.0, 0.0

        def on_start(self, _):
            if self.depth == 0:
                self.began = time.perf_counter()
            self.depth += 1

        def on_end(self, _):
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.began

    clock = Clock()
    event.register("numba:compile", clock)
    from taxofit import TaxonomyClassifier
    from taxofit.datasets import make_shop_catalogue

    shop = make_shop_catalogue(2000)
    classifier = TaxonomyClassifier(shop.taxonomy, encoder="words").fit(shop.texts, shop.y)
    of_fit = clock.seconds
    classifier.predict(shop.texts[:10])
    return of_fit, clock.seconds - of_fit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="measure in this process")
    arguments = parser.parse_args()
    if arguments.here:
        print("fit {:.1f} s, predict {:.1f} s more".format(*compile_seconds()))
        return
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            subprocess.run([sys.executable, __file__, "--here"], check=True, env=environment)


if __name__ == "__main__":
    main()
