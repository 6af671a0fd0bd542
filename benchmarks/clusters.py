"""What a work folder and workers cost a fit: time, bytes on the disk and bytes over the network.

    python benchmarks/clusters.py --problem naics-words --C 10

Fits the same rows in threads, with a work folder, again from that folder, in two processes of
joblib, and on a dask cluster of two processes, in turn, several rounds, best of each. Every model
is compared with the first, bit for bit.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import problems
from distributed import Client, LocalCluster

from taxofit import TaxonomyClassifier
from taxofit.bank import distribution


def fit(problem, C, work_dir=None):
    labels = np.array(problem.taxonomy.labels, dtype=object)[problem.row_leaf]
    classifier = TaxonomyClassifier(problem.taxonomy, C=C, device="cpu", work_dir=work_dir)
    wall, cpu = time.perf_counter(), time.process_time()
    classifier.fit(problem.X, labels)
    return classifier, time.perf_counter() - wall, time.process_time() - cpu


def bits(classifier):
    return {name: array.tobytes() for name, array in classifier.weights_.to_arrays().items()}


class Traffic:
    """Sizes of what goes to workers."""

    def __init__(self):
        self.tasks, self.parcels = [], {}
        self._delayed = joblib.delayed

    def __enter__(self):
        distribution.joblib.delayed = self._counting
        return self

    def __exit__(self, *_):
        distribution.joblib.delayed = self._delayed

    def _counting(self, function):
        def call(parcel, *arguments):
            self.tasks.append(len(pickle.dumps(arguments)))
            if parcel.key not in self.parcels:
                self.parcels[parcel.key] = parcel.opened().payload.nbytes
            return function, (parcel, *arguments), {}

        return call


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--problem", default="naics-words", choices=["naics", "naics-words", "dmoz-small"]
    )
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    problem = problems.load(arguments.problem)
    folder = Path(tempfile.mkdtemp())
    times = {}

    def run(name, work_dir=None):
        classifier, wall, cpu = fit(problem, arguments.C, work_dir)
        assert bits(classifier) == expected, name  # noqa: S101  (what this is about)
        times.setdefault(name, []).append((wall, cpu))
        print(f"{name}: {wall:.1f} s, {cpu:.1f} s of CPU at home", flush=True)

    expected = bits(fit(problem, arguments.C)[0])
    try:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
            Traffic() as traffic,
        ):
            for number in range(arguments.rounds):
                run("threads")
                run("work folder", folder / str(number))
                run("resumed", folder / str(number))
                with joblib.parallel_config(backend="loky", n_jobs=2):
                    run("two processes")
                with joblib.parallel_config(backend="dask", client=client):
                    run("dask, two processes")
        shards = [path.stat().st_size for path in (folder / "0" / "blocks").iterdir()]
    finally:
        shutil.rmtree(folder)
    for name, taken in times.items():
        wall, cpu = (min(values) for values in zip(*taken, strict=True))
        ratio = wall / min(each[0] for each in times["threads"])
        print(f"{name}: {wall:.1f} s, {cpu:.1f} s of CPU, {ratio:.2f} of threads")
    print(f"{len(shards)} shards, {sum(shards):,} bytes, {max(shards):,} the largest")
    print(f"tasks: {len(traffic.tasks)}, mean {np.mean(traffic.tasks):,.0f} bytes to a worker")
    print(f"mean result {np.mean(shards):,.0f} bytes; parcels {sorted(traffic.parcels.values())}")


if __name__ == "__main__":
    main()
