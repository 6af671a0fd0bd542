"""Running the protocol on a data set, from files to results."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit._version import __version__
from taxofit.experiment import outcomes as tested
from taxofit.experiment.cache import PieceCache
from taxofit.experiment.codes import CodeExperiment
from taxofit.experiment.outcomes import Outcome
from taxofit.experiment.problem import load_problem
from taxofit.experiment.protocol import TITLES, Protocol
from taxofit.experiment.refits import refit
from taxofit.experiment.runtimes import measure_runtimes
from taxofit.experiment.splits import Run, validate
from taxofit.experiment.tables import write_tables
from taxofit.predict.walk import walk_scores
from taxofit.progress import stage_of
from taxofit.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taxofit.experiment.problem import Encoding, Problem
    from taxofit.progress import StageProgress

__all__ = ["run_protocol", "run_reproduction"]

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def run_reproduction(
    source: str | Path,
    out: str | Path,
    *,
    data: str | Path | None = None,
    protocol: Protocol | None = None,
    encoding: Encoding | None = None,
    draws_figures: bool = True,
    progress: StageProgress | None = None,
) -> dict[str, Any]:
    """Run the paper's protocol and write ``results.json``, ``tables.md`` and ``figures/``.

    Finished pieces are kept in ``out/cache``; a run that was stopped, or is asked for more runs or
    other methods, goes on from them.

    Parameters
    ----------
    source : str or path
        A benchmark (``clef``, ``diatoms``, ``dmoz-small``, ``ipc-d``, ``naics``, ``20news``), or a
        folder as :func:`~taxofit.experiment.folder.read_folder` wants it.
    out : path
        Folder for the results; made where it does not exist.
    data : path, optional
        The folder that holds the benchmarks; ``TAXOFIT_DATA`` by default.
    protocol : Protocol, optional
    encoding : Encoding, optional
        How rows and taxonomy are prepared; that of :data:`~taxofit.experiment.problem.ENCODINGS`
        by default, and guessed for a folder.
    draws_figures : bool
        Figures need plotly (``pip install 'taxofit[report]'``); without it the results' ``notes``
        say so and everything else is written.
    progress : callable, optional
        Called with (stage, done, in all).

    Returns
    -------
    dict
        What ``results.json`` holds; scores are fractions.
    """
    protocol = Protocol() if protocol is None else protocol
    out = Path(out)
    problem = load_problem(source, data, encoding=encoding, seed=protocol.seed)
    out.mkdir(parents=True, exist_ok=True)
    results = run_protocol(problem, protocol, cache_folder=out / "cache", progress=progress)
    if draws_figures:
        results["notes"] += _draw(results, out / "figures")
    _write(out / "results.json", json.dumps(results, indent=1, allow_nan=False) + "\n")
    _write(out / "tables.md", write_tables(results))
    return results


def run_protocol(
    problem: Problem,
    protocol: Protocol,
    *,
    cache_folder: str | Path | None = None,
    progress: StageProgress | None = None,
) -> dict[str, Any]:
    """Return the results of the protocol on a problem; the parameters are as above."""
    began = time.perf_counter()
    common = {"problem": problem.fingerprint, **protocol.model_key()}
    cache = PieceCache(cache_folder, common)
    notes: list[str] = []
    needs_banks = any(protocol.flattening_methods())
    runs = _validate(problem, protocol, cache, progress) if needs_banks else []
    outcomes = _test(problem, protocol, runs, cache, progress)
    notes += [
        f"{TITLES[method]} does not exist here: the taxonomy lacks internal nodes on its levels"
        for method in protocol.flattening_methods()
        if method not in runs[0].choices
    ]
    if "ecoc" in protocol.methods:
        outcomes += _test_codes(problem, protocol, cache, progress)
    results = [outcome.to_result(problem) for outcome in outcomes]
    summary = tested.summarise(results)
    has_curve = "global-inf" in protocol.methods and bool(runs)
    return {
        "dataset": problem.name,
        "results": results,
        "summary": summary,
        "significance": tested.significance(outcomes, problem, summary),
        "level_errors": tested.level_errors(outcomes, problem),
        "by_class_size": tested.by_class_size(outcomes, problem),
        "class_sizes": tested.class_sizes(problem),
        "threshold_curve": tested.threshold_curve(runs, protocol.Cs) if has_curve else {},
        "fan_out": tested.fan_out(outcomes, problem),
        "timing": [
            {
                "seed": run.seed,
                "method": method,
                "bank_seconds": run.bank_seconds,
                "choice_seconds": choice.seconds,
            }
            for run in runs
            for method, choice in run.choices.items()
        ],
        "runtimes": _runtimes(problem, protocol, runs, cache, progress),
        "data": problem.describe(),
        "protocol": protocol.to_json(),
        "versions": {
            "taxofit": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
        "seconds": time.perf_counter() - began,
        "notes": notes,
    }


def _validate(
    problem: Problem, protocol: Protocol, cache: PieceCache, progress: StageProgress | None
) -> list[Run]:
    """Solve the bank of every split, and choose."""
    runs = []
    for k, seed in enumerate(protocol.seeds):
        stage = stage_of(progress, f"Run {k + 1} of {protocol.n_runs}: solving all nodes at each C")
        key = {"seed": seed, "Cs": list(protocol.Cs), "fraction": protocol.validation_fraction}
        arrays = cache.get("split", key, lambda: validate(problem, protocol, seed, stage))  # noqa: B023  (called at once)
        runs.append(Run.from_arrays(seed, arrays))
    return runs


def _test(
    problem: Problem,
    protocol: Protocol,
    runs: Sequence[Run],
    cache: PieceCache,
    progress: StageProgress | None,
) -> list[Outcome]:
    """Refit at every chosen C and walk the test rows for every method and run."""
    chosen = [
        (run, method, run.choices[method])
        for method in protocol.flattening_methods()
        for run in runs
        if method in run.choices
    ]
    Cs = {choice.C for _, _, choice in chosen}
    pieces = refit(
        problem, protocol, Cs, cache, stage_of(progress, "Refitting on all training rows")
    )
    taxonomy = problem.taxonomy
    walk_scores(
        np.zeros((1, taxonomy.n_nodes), dtype=np.float32), taxonomy
    )  # compiled before timing
    outcomes = []
    for run, method, choice in chosen:
        piece = pieces[choice.C]
        flattened, kept = taxonomy.without(choice.removed)
        began = time.perf_counter()
        predicted = kept[walk_scores(piece["scores"], flattened, kept)]
        walk_seconds = time.perf_counter() - began
        share = (kept.size - 1) / (taxonomy.n_nodes - 1)
        validated_share = 1.0 if method in {"mta", "level-inf", "global-inf"} else share
        outcomes.append(
            Outcome(
                method=method,
                seed=run.seed,
                C=choice.C,
                psi=choice.psi,
                removed=choice.removed,
                predicted=predicted,
                train_seconds=validated_share * run.bank_seconds
                + choice.seconds
                + share * float(piece["seconds"]),
                predict_seconds=share * float(piece["score_seconds"]) + walk_seconds,
            )
        )
    return outcomes


def _test_codes(
    problem: Problem, protocol: Protocol, cache: PieceCache, progress: StageProgress | None
) -> list[Outcome]:
    """Choose, refit and test ECOC in every run."""
    codes = CodeExperiment(problem, protocol, cache)
    choices = {}
    for k, seed in enumerate(protocol.seeds):
        stage = stage_of(
            progress, f"Run {k + 1} of {protocol.n_runs}: solving ECOC's bits at each C"
        )
        choices[seed] = codes.validate(seed, stage)
    outcomes = []
    everything = problem.taxonomy.is_internal
    for seed, choice in choices.items():
        C, n_bits = float(choice["C"]), int(choice["n_bits"])
        piece = codes.refit(C, stage_of(progress, "Refitting ECOC's bits"))
        began = time.perf_counter()
        predicted = codes.predict(piece["margins"], n_bits)
        outcomes.append(
            Outcome(
                method="ecoc",
                seed=seed,
                C=C,
                psi=(),
                removed=everything,
                predicted=predicted,
                train_seconds=float(choice["seconds"]) + float(piece["seconds"]),
                predict_seconds=time.perf_counter() - began,
                n_bits=n_bits,
            )
        )
    return outcomes


def _runtimes(
    problem: Problem,
    protocol: Protocol,
    runs: Sequence[Run],
    cache: PieceCache,
    progress: StageProgress | None,
) -> dict[str, Any]:
    """Return training and prediction time of LR and Global-INF fitted on their own."""
    wanted = [m for m in ("lr", "global-inf") if m in protocol.methods]
    if not (protocol.measures_time and runs and wanted):
        return {}
    found: dict[str, Any] = {}
    for k, method in enumerate(wanted):
        C = runs[0].choices[method].C
        key = {"method": method, "C": C, "seed": protocol.seed}
        piece = cache.get("time", key, lambda: measure_runtimes(problem, protocol, method, C))  # noqa: B023  (called at once)
        found[method] = {"C": C, **{name: float(value) for name, value in piece.items()}}
        if progress is not None:
            progress("Measuring run times", k + 1, len(wanted))
    return found


def _draw(results: dict[str, Any], folder: Path) -> list[str]:
    """Write the figures; return a note where plotly is missing."""
    try:
        from taxofit.plotting import write_figures

        write_figures(results, folder)
    except ModuleNotFoundError as error:
        if error.name != "plotly":
            raise
        return ["figures were not drawn: plotly is missing; pip install 'taxofit[report]'"]
    return []


def _write(path: Path, text: str) -> None:
    with whole_file(path) as stream:
        stream.write(text.encode())
