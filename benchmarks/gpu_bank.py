"""A whole bank on one GPU: time by stage, work done, bytes moved, and checks of the answers.

    PYTHONPATH=src python3 benchmarks/gpu_bank.py --size dmoz-2010 --C 1
    PYTHONPATH=src python3 benchmarks/gpu_bank.py --size dmoz-2010 --grid --json grid.json
    PYTHONPATH=src python3 benchmarks/gpu_bank.py --smoke            # tiny, on torch's CPU device

The rows are made up (see taxofit.datasets.web_directory); 10 % of them are held out as evidence.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dmoz_sized import load_problem

from taxofit.bank.kernels import kernels_for
from taxofit.bank.objective import gradient, objective, stopping_threshold
from taxofit.bank.rows import node_targets
from taxofit.bank.solver import SolverSettings, solve_all_negative, solve_block

C_GRID = [10.0**k for k in range(-3, 4)]
SETTINGS = SolverSettings()


@dataclass
class Stages:
    """Seconds by stage; the device has finished when a stage ends."""

    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, stage: str, work: Any, *arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        result = work(*arguments, **options)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        return result


class Bank:
    """Distinct problems of all nodes, those of like size side by side."""

    def __init__(self, problem: Any, device: str, stages: Stages, block_size: int | None) -> None:
        self.problem, self.stages = problem, stages
        self.kernels: Any = stages.timed("upload", kernels_for, problem.train, device)
        self.block_size = block_size or self.kernels.block_size
        taxonomy = problem.taxonomy
        position = np.sort(taxonomy.leaf_start[problem.train_leaf])
        bounds = np.searchsorted(
            position, np.stack([taxonomy.leaf_start[1:], taxonomy.leaf_stop[1:]])
        )
        bounds[:, bounds[0] == bounds[1]] = 0
        _, first, self.problem_of = np.unique(
            bounds, axis=1, return_index=True, return_inverse=True
        )
        by_size = np.argsort(np.diff(bounds, axis=0)[0][first], kind="stable")
        self.distinct = first[by_size] + 1
        self.place = np.argsort(by_size)

    def blocks(self) -> list[Any]:
        size = self.block_size
        return [self.distinct[k : k + size] for k in range(0, self.distinct.size, size)]

    def solve(self, Cs: list[float], keep: dict[tuple[int, float], Any]) -> list[dict[str, Any]]:
        """Solve every block along the grid; keep the weights of the nodes in ``keep``."""
        problem, timed = self.problem, self.stages.timed
        weight = problem.train.weight
        tally = [
            {"C": C, "seconds": 0.0, "products": 0, "newton_steps": 0, "converged": 0, "f_sum": 0.0}
            for C in Cs
        ]
        f_star = np.full((len(Cs), self.distinct.size), np.nan)
        common = timed(
            "common start", solve_all_negative, self.kernels, Cs[0] * weight, SETTINGS
        ).device_weights
        n_done = 0
        for nodes in self.blocks():
            targets = node_targets(problem.taxonomy, problem.train_leaf, nodes)
            held_out = node_targets(problem.taxonomy, problem.validation_leaf, nodes)
            start = None
            for k, C in enumerate(Cs):
                started = time.perf_counter()
                solution = timed(
                    "solve", solve_block, self.kernels, targets, C * weight, SETTINGS, start,
                    common=common,
                )  # fmt: skip
                _, losses = timed("evidence", solution.judge, problem.validation, held_out)
                norms = timed("evidence", solution.weight_norms)
                f_star[k, n_done : n_done + nodes.size] = C * losses + 0.5 * norms**2
                tally[k]["seconds"] += time.perf_counter() - started
                tally[k]["products"] += solution.n_products
                tally[k]["newton_steps"] += int(solution.n_iterations.sum())
                tally[k]["converged"] += int(solution.converged.sum())
                start = solution.device_weights
                for column in np.flatnonzero([(int(n), C) in keep for n in nodes]):
                    keep[int(nodes[column]), C] = solution.take(np.array([column])).weights[:, 0]
            n_done += nodes.size
            print(
                f"  {n_done:6d} of {self.distinct.size} problems, {self.stages.seconds}", flush=True
            )
        for k, line in enumerate(tally):
            line["f_sum"] = float(f_star[k][self.place[self.problem_of]].sum())
            line["products_per_problem"] = line["products"] / self.distinct.size
        return tally


def copy_bandwidth(device: str) -> float:
    """Return bytes read and written per second by a large copy on the device."""
    cells = 1 << (28 if device == "cuda" else 24)
    source = torch.rand(cells, device=device)
    target = torch.empty_like(source)
    best = np.inf
    for _ in range(6):
        started = time.perf_counter()
        target.copy_(source)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return 8.0 * cells / best


def bytes_moved(bank: Bank, tally: list[dict[str, Any]]) -> float:
    """Return the bytes that the products must move: W and Z once each way, whatever the cache does.

    X itself is read once a block and is small beside them. Gathered rows of W that miss the
    cache come on top, so that the share of the copy's rate is a lower bound.
    """
    cells = bank.kernels.n_features + bank.kernels.n_rows
    return 4.0 * cells * sum(line["products"] for line in tally)


def check(bank: Bank, kept: dict[tuple[int, float], Any]) -> list[dict[str, float]]:
    """Hold kept weights to the NumPy reference: gradient norm over liblinear's threshold.

    No eigenvalue of the Hessian is below 1, so the objective is at most ½‖∇f‖² above its
    minimum: that bound over the objective is its ``excess``.
    """
    problem, lines = bank.problem, []
    for (node, C), weights in kept.items():
        targets = node_targets(problem.taxonomy, problem.train_leaf, np.array([node]))
        y, X = targets.signs()[:, 0], problem.train.X
        zero = np.zeros(weights.size)
        goal = stopping_threshold(
            np.linalg.norm(gradient(zero, X, y, C)), targets.n_positive()[0], y.size, SETTINGS.tol
        )
        norm = np.linalg.norm(gradient(weights, X, y, C))
        value = objective(weights, X, y, C)
        lines.append(
            {
                "node": node,
                "C": C,
                "positive": int(targets.n_positive()[0]),
                "objective": value,
                "gradient_over_threshold": float(norm / goal),
                "excess": float(0.5 * norm**2 / value),
            }
        )
    return lines


def run(options: argparse.Namespace) -> dict[str, Any]:
    stages = Stages()
    problem = stages.timed(
        "rows", load_problem, options.size, scale=options.scale, cache=options.cache
    )
    torch_device = "cpu" if options.device == "torch-cpu" else "cuda"
    print(f"{options.size}: {problem}", flush=True)
    copied = copy_bandwidth(torch_device)
    started = time.perf_counter()
    bank = Bank(problem, options.device, stages, options.block_size)
    Cs = C_GRID if options.grid else [options.C]
    rng = np.random.default_rng(0)
    chosen = rng.choice(bank.distinct, min(options.check, bank.distinct.size), replace=False)
    kept: dict[tuple[int, float], Any] = {(int(node), C): None for node in chosen for C in Cs}
    tally = bank.solve(Cs, kept)
    wall = time.perf_counter() - started
    moved = bytes_moved(bank, tally)
    return {
        "size": options.size,
        "scale": options.scale,
        "device": torch.cuda.get_device_name() if torch_device == "cuda" else "torch on the CPU",
        "torch": torch.__version__,
        "n_nodes": problem.taxonomy.n_nodes - 1,
        "n_problems": int(bank.distinct.size),
        "n_train": problem.train.n_rows,
        "n_validation": problem.validation.n_rows,
        "non_zeros": int(problem.train.X.nnz),
        "features": problem.train.n_features,
        "features_solved_for": bank.kernels.n_features,
        "block_size": bank.block_size,
        "bank_wall_seconds": wall,
        "stages": stages.seconds,
        "by_C": tally,
        "peak_gpu_gib": torch.cuda.max_memory_allocated() / 2**30
        if torch_device == "cuda"
        else None,
        "copy_tb_per_second": copied / 1e12,
        "least_tb_moved": moved / 1e12,
        "share_of_copy_rate": moved / stages.seconds["solve"] / copied,
        "checks": check(bank, kept),
    }


def show(result: dict[str, Any]) -> None:
    print("\n" + ", ".join(f"{key} {result[key]}" for key in list(result)[:12]))
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in result["stages"].items())
    print(f"bank wall {result['bank_wall_seconds']:.1f} s; {stages}")
    print(f"{'C':>8} {'seconds':>8} {'products':>9} {'Newton':>8} {'converged':>10} {'Σ f*':>14}")
    for line in result["by_C"]:
        print(
            f"{line['C']:8g} {line['seconds']:8.2f} {line['products_per_problem']:9.1f} "
            f"{line['newton_steps'] / result['n_problems']:8.2f} "
            f"{line['converged'] / result['n_problems']:10.4f} {line['f_sum']:14.1f}"
        )
    print(
        f"peak GPU memory {result['peak_gpu_gib']} GiB; "
        f"copy {result['copy_tb_per_second']:.2f} TB/s; "
        f"at least {result['least_tb_moved']:.3f} TB moved, "
        f"{100 * result['share_of_copy_rate']:.1f} % of the copy's rate while solving"
    )
    if result["checks"]:
        worst = max(line["gradient_over_threshold"] for line in result["checks"])
        excess = max(line["excess"] for line in result["checks"])
        print(
            f"{len(result['checks'])} models checked: gradient at most {worst:.2f} of its "
            f"threshold, objective at most {excess:.1e} above its minimum"
        )


def require(is_true: bool, what: str) -> None:  # noqa: FBT001
    if not is_true:
        raise SystemExit(f"smoke test failed: {what}: no")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="dmoz-2010", help="dmoz-small, dmoz-2010 or dmoz-2012")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink all counts")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--grid", action="store_true", help="all seven C instead of one")
    parser.add_argument("--check", type=int, default=0, metavar="N", help="nodes to check in NumPy")
    parser.add_argument("--device", default="cuda", choices=["cuda", "torch-cpu"])
    parser.add_argument(
        "--block-size", type=int, help="problems side by side; by free memory if not given"
    )
    parser.add_argument("--cache", type=Path, help="folder to keep made-up rows in")
    parser.add_argument("--json", type=Path, help="where to write all numbers")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes on any device, all checks")
    options = parser.parse_args()
    if options.smoke:
        options.size, options.scale, options.grid, options.check = "dmoz-small", 0.05, True, 5
        options.device = "cuda" if torch.cuda.is_available() else "torch-cpu"
    result = run(options)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    if options.smoke:
        require(
            all(line["converged"] == result["n_problems"] for line in result["by_C"]),
            "all problems converge",
        )
        # At the smallest C float32 reaches its limit first: then the objective must be exact.
        require(
            all(
                line["gradient_over_threshold"] < 2 or line["excess"] < 1e-9
                for line in result["checks"]
            ),
            "gradients are as small as the stopping rule asks",
        )
        print("smoke test passed")


if __name__ == "__main__":
    main()
