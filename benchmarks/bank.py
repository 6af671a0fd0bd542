"""One bank of node models, ours against LibMultiLabel and scikit-learn's liblinear, side by side.

    python benchmarks/bank.py naics --C 1 10 100 1000 --peers .peers/bin/python --out runs/bank

Each C is timed in turn for ours and the peers, several rounds, best of each; slow peers
solve a random sample of nodes and are scaled up, which the table says. All stop on liblinear's rule
at 1e-4. Peak memory is that of a process for each, with the rows and what it keeps of its weights.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numba
import numpy as np
import problems
from peers.train import peak_mb

from taxofit import __version__
from taxofit.bank.harvest import Harvest, pick_weights
from taxofit.bank.objective import objective
from taxofit.bank.rows import Rows

TRAIN = Path(__file__).parent / "peers" / "train.py"


def solve_ours(problem, C, sample):
    """Return seconds for the whole bank, from rows on, and the weights of the sampled nodes."""
    wanted, kept = set(sample.tolist()), {}

    def keep(nodes, _, arrays):
        for column, node in enumerate(nodes):
            if int(node) in wanted:
                kept[int(node)] = np.array(arrays["weights"][:, column], dtype=np.float64)

    start, cpu = time.perf_counter(), time.process_time()
    report = problem.bank().solve([C], Harvest(pick_weights, keep), nodes=problem.nodes())
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, "report": report}, kept


def peak_of_ours(name, C):
    """Return the peak in MB of a process that makes the rows, solves the bank and keeps a model."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_solve_and_weigh, name, C).result()


def _solve_and_weigh(name, C):
    problem = problems.load(name)
    problem.solve_and_keep(problem.bank(), C)
    return peak_mb()


def solve_peer(python, problem_file, peer, C, positions, n_nodes, threads):
    """Return seconds scaled to the whole bank, and the weights of the sampled nodes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        nodes = ",".join(map(str, positions)) if len(positions) < n_nodes else ""
        command = [python, str(TRAIN), str(problem_file), str(out), "--peer", peer, "--C", str(C)]
        command += ["--threads", str(threads)] + (["--nodes", nodes] if nodes else [])
        subprocess.run(command, check=True)
        with np.load(out) as saved:
            scaled = float(saved["seconds"]) * n_nodes / len(positions)
            return {"seconds": scaled, "peak_mb": float(saved["peak_mb"])}, saved["weights"]


def differences(problem, C, sample, ours, theirs):
    """Return (ours - theirs) / theirs of the sampled nodes' objectives, in float64."""
    X = Rows.prepare(problem.X).X
    relative = []
    for column, node in enumerate(sample):
        y = np.full(X.shape[0], -1.0)
        y[problem.positives(node)] = 1.0
        reference = objective(theirs[:, column], X, y, C)
        relative.append((objective(ours[int(node)], X, y, C) - reference) / reference)
    return np.asarray(relative)


def measure(problem, arguments):
    nodes = problem.nodes()
    rng = np.random.default_rng(0)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        problem.save_for_peers(file)
        solve_ours(problem, 1.0, nodes[:1])  # compile
        for C in arguments.C:
            n_sample = max(4, int(arguments.share * len(nodes)))
            positions = np.sort(
                rng.choice(len(nodes), size=min(n_sample, len(nodes)), replace=False)
            )
            sample = nodes[positions]
            few = positions[:: max(1, len(positions) // arguments.liblinear_nodes)]
            runs = {"ours": [], "libmultilabel": [], "liblinear": []}
            for repeat in range(arguments.rounds):
                timing, weights = solve_ours(problem, C, sample)
                runs["ours"].append(timing)
                for threads in (1, 2) if repeat == 0 else (1,):
                    timing, theirs = solve_peer(
                        arguments.peers, file, "libmultilabel", C, positions, len(nodes), threads
                    )
                    runs["libmultilabel"].append(timing)
                timing, _ = solve_peer(arguments.peers, file, "liblinear", C, few, len(nodes), 1)
                runs["liblinear"].append(timing)
            relative = differences(problem, C, sample, weights, theirs)
            best = {name: min(run["seconds"] for run in timings) for name, timings in runs.items()}
            row = {
                "C": C,
                **{f"{name}_seconds": seconds for name, seconds in best.items()},
                "ours_cpu_seconds": min(run["cpu_seconds"] for run in runs["ours"]),
                "times_faster_than_libmultilabel": best["libmultilabel"] / best["ours"],
                "times_faster_than_liblinear": best["liblinear"] / best["ours"],
                "objective_difference_median": float(np.median(relative)),
                "objective_difference_max": float(relative.max()),
                "ours_peak_mb": peak_of_ours(problem.name, C),
                "libmultilabel_peak_mb": max(run["peak_mb"] for run in runs["libmultilabel"]),
                "n_problems": runs["ours"][0]["report"].n_problems,
                "sampled_nodes": len(positions),
            }
            if C in arguments.hiclass:
                everything = np.arange(len(nodes))
                timing, _ = solve_peer(
                    arguments.peers, file, "hiclass", C, everything, len(nodes), 1
                )
                row["hiclass_seconds"] = timing["seconds"]
                row["times_faster_than_hiclass"] = timing["seconds"] / best["ours"]
            results.append(row)
            print(json.dumps(row), flush=True)
    return results


def table(problem, results):
    lines = [
        (
            f"{problem.name}: {problem.X.shape[0]:,} x {problem.X.shape[1]:,}, "
            f"{problem.X.nnz / problem.X.shape[0]:.0f} non-zeros a row, "
            f"{len(problem.nodes()):,} nodes ({results[0]['n_problems']:,} distinct problems); "
            f"peers on {results[0]['sampled_nodes']} nodes, scaled"
        ),
        "",
        (
            "| C | taxofit s | LibMultiLabel s | liblinear s | × LibMultiLabel | × liblinear | "
            "objective difference, median | max | peak MB, ours | LibMultiLabel's |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['C']:g} | {r['ours_seconds']:.2f} | {r['libmultilabel_seconds']:.1f} | "
        f"{r['liblinear_seconds']:.0f} | {r['times_faster_than_libmultilabel']:.1f} | "
        f"{r['times_faster_than_liblinear']:.0f} | {r['objective_difference_median']:.1e} | "
        f"{r['objective_difference_max']:.1e} | {r['ours_peak_mb']:.0f} | "
        f"{r['libmultilabel_peak_mb']:.0f} |"
        for r in results
    ]
    lines += [
        f"\nhiclass at C={r['C']:g}: {r['hiclass_seconds']:.0f} s, "
        f"{r['times_faster_than_hiclass']:.0f} times ours"
        for r in results
        if "hiclass_seconds" in r
    ]
    return "\n".join(lines)


def machine():
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "processor": next(
            (
                line.split(":")[1].strip()
                for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")
            ),
            platform.processor(),
        ),
        "taxofit": __version__,
        "numba": numba.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=["naics", "dmoz-small"])
    parser.add_argument("--C", type=float, nargs="+", default=[10.0**k for k in range(-3, 4)])
    parser.add_argument("--peers", default="python", help="Python of the peers' environment")
    parser.add_argument("--share", type=float, default=0.05, help="share of nodes for peers")
    parser.add_argument("--liblinear-nodes", type=int, default=100, help="of them for liblinear")
    parser.add_argument("--hiclass", type=float, nargs="*", default=[], help="C to time it at")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    problem = problems.load(arguments.problem)
    results = measure(problem, arguments)
    print(table(problem, results))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        found = {"machine": machine(), "results": results}
        (arguments.out / f"bank-{problem.name}.json").write_text(json.dumps(found, indent=2))
        (arguments.out / f"bank-{problem.name}.md").write_text(table(problem, results) + "\n")


if __name__ == "__main__":
    main()
