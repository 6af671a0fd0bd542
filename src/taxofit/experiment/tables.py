"""Results as Markdown: every table and figure of the paper, ours beside the paper's.

Percentages, as the paper prints them. A cell reads "ours (std) · paper's · difference"; the paper's
figures are set in italics and marked with a p, and are never ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taxofit.experiment import paper_figures as paper
from taxofit.experiment.protocol import METHODS, TITLES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["write_tables"]

SCORE_TITLES = {
    "micro_f1": "µF1",
    "macro_f1": "MF1",
    "hierarchical_f1": "hF1, original taxonomy",
    "hierarchical_f1_modified": "hF1, modified taxonomy",
    "tree_error": "TE, original taxonomy",
    "tree_error_modified": "TE, modified taxonomy",
}
N_CURVE_STEP = 3


def write_tables(results: dict[str, Any]) -> str:
    """Return the tables of a results dictionary as one Markdown text."""
    parts = [
        _heading(results),
        _data(results),
        _flat_scores(results),
        _choices(results),
        _significance(results),
        _hierarchical(results),
        _curve(results),
        _fan_out(results),
        _level_errors(results),
        _by_class_size(results),
        _class_sizes(results),
        _runtimes(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(results: dict[str, Any]) -> str:
    protocol, versions = results["protocol"], results["versions"]
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    lines = [
        f"# {results['dataset']}",
        (
            f"{protocol['n_runs']} runs, seeds {protocol['seed']} to "
            f"{protocol['seed'] + protocol['n_runs'] - 1}; C from {_list(protocol['Cs'])}; "
            f"{results['data']['encoding']}. {named}; {results['machine']['cores']} cores."
        ),
        (
            "Ours: mean (standard deviation over runs, dividing by n - 1), in percent; TE in "
            "edges. *p 12.34* is the figure that the paper prints, followed by ours minus it. "
            "A dash: the paper prints none."
        ),
    ]
    return "\n\n".join([*lines, *(f"Note: {note}." for note in results["notes"])])


def _data(results: dict[str, Any]) -> str:
    data = results["data"]
    ours = [data[k] for k in ("n_nodes", "n_leaves", "depth", "n_train", "n_test", "n_features")]
    rows = [["ours", *map(str, ours)]]
    if results["dataset"] in paper.DATASETS:
        printed = paper.DATASETS[results["dataset"]]
        rows.append(["*paper's*", *(f"*p {value}*" for value in printed)])
    head = ["", "nodes", "leaves", "depth", "training", "test", "features"]
    return "## Data (paper's table 'Dataset statistics')\n\n" + _table(head, rows)


def _flat_scores(results: dict[str, Any]) -> str:
    title = "## µF1 and MF1 (paper's table of flat metrics; LR and ECOC from that of class sizes)"
    printed = dict(paper.FLAT_SCORES.get(results["dataset"], {}))
    sizes = paper.BY_CLASS_SIZE.get(results["dataset"])
    if sizes is not None:
        flat = {method: (sizes["all"][method][0], None) for method in ("lr", "ecoc")}
        printed["macro_f1"] = {**printed["macro_f1"], **flat}  # type: ignore[dict-item]
    marks = _marks(results)
    body = _scores(results, ("micro_f1", "macro_f1"), printed, marks)
    foot = ""
    best = results["significance"].get("best_baseline")
    if best is not None:
        foot = (
            f"\n\n† p < 0.05, ‡ p < 0.01 of Global-INF against the best top-down baseline by mean "
            f"MF1, {TITLES[best]}, in the first run: sign test for µF1, Wilcoxon test for MF1."
        )
    return f"{title}\n\n{body}{foot}"


def _marks(results: dict[str, Any]) -> dict[tuple[str, str], str]:
    found = results["significance"]
    if "best_baseline" not in found:
        return {}
    first = found["global_inf_against"][found["best_baseline"]][0]
    return {
        ("global-inf", "micro_f1"): _mark(first["sign_p_value"]),
        ("global-inf", "macro_f1"): _mark(first["wilcoxon_p_value"]),
    }


def _mark(p_value: float) -> str:
    return " ‡" if p_value < 0.01 else " †" if p_value < 0.05 else ""


def _hierarchical(results: dict[str, Any]) -> str:
    printed = paper.HIERARCHICAL.get(results["dataset"], {})
    scores = tuple(name for name in SCORE_TITLES if name not in {"micro_f1", "macro_f1"})
    title = "## hF1 and TE (paper's table of hierarchical metrics)"
    return f"{title}\n\n{_scores(results, scores, printed, {})}"


def _scores(
    results: dict[str, Any],
    scores: Sequence[str],
    printed: dict[str, dict[str, Any]],
    marks: dict[tuple[str, str], str],
) -> str:
    """Return a table with a method on each line and, for each score, ours, paper's, difference."""
    head = ["method"]
    for score in scores:
        head += [SCORE_TITLES[score], "paper's", "difference"]
    rows = []
    for method in METHODS:
        if method not in results["summary"]:
            continue
        row = [TITLES[method]]
        for score in scores:
            ours = results["summary"][method][score]
            scale = 1 if score.startswith("tree_error") else 100
            value = f"{scale * ours['mean']:.2f} ({scale * ours['std']:.2f})"
            row.append(value + marks.get((method, score), ""))
            row += _beside(scale * ours["mean"], printed.get(score, {}).get(method))
        rows.append(row)
    return _table(head, rows)


def _beside(ours: float, printed: tuple[float, float | None] | None) -> list[str]:
    if printed is None:
        return ["–", "–"]
    mean, std = printed
    spread = "" if std is None else f" ({std:.2f})"
    return [f"*p {mean:.2f}{spread}*", f"{ours - mean:+.2f}"]


def _choices(results: dict[str, Any]) -> str:
    rows = [
        [
            TITLES[r["method"]],
            str(r["seed"]),
            f"{r['C']:g}",
            _psi(r),
            str(r["n_removed"]),
            f"{100 * r['micro_f1']:.2f}",
            f"{100 * r['macro_f1']:.2f}",
        ]
        for r in results["results"]
    ]
    head = ["method", "seed", "C", "ψ (bits)", "removed", "µF1", "MF1"]
    return "## Every run: what the validation rows chose\n\n" + _table(head, rows)


def _psi(result: dict[str, Any]) -> str:
    if "n_bits" in result:
        return f"({result['n_bits']} bits)"
    psi = result["psi"]
    if psi is None:
        return "–"
    values = psi if isinstance(psi, list) else [psi]
    return ", ".join("∞" if value is None else f"{value:g}" for value in values)


def _significance(results: dict[str, Any]) -> str:
    found = results["significance"]
    names = [TITLES[name] for name in found["methods"]]
    parts = [f"## Pairwise p-values, seed {found['run']} (paper's heat maps, drawn for DMOZ-SMALL)"]
    for title, key in (("Sign test, µF1", "sign"), ("Wilcoxon test, MF1", "wilcoxon")):
        rows = [
            [name, *(_p_value(p) for p in line)]
            for name, line in zip(names, found[f"{key}_p_values"], strict=True)
        ]
        parts.append(f"{title}\n\n{_table(['', *names], rows)}")
    if "global_inf_against" in found:
        rows = [
            [
                TITLES[rival],
                str(c["seed"]),
                f"{c['n_rows_better']} : {c['n_rows_worse']}",
                _p_value(c["sign_p_value"]),
                f"{c['n_classes_better']} : {c['n_classes_worse']}",
                _p_value(c["wilcoxon_p_value"]),
            ]
            for rival, comparisons in found["global_inf_against"].items()
            for c in comparisons
        ]
        head = ["Global-INF against", "seed", "rows won : lost", "p", "classes won : lost", "p"]
        parts.append(f"Global-INF in every run\n\n{_table(head, rows)}")
    return "\n\n".join(parts)


def _p_value(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _curve(results: dict[str, Any]) -> str:
    curve = results["threshold_curve"]
    if not curve:
        return ""
    picked = range(0, len(curve["psi"]), N_CURVE_STEP)
    rows = [["Global-INF", *(f"{100 * curve['macro_f1'][k]:.1f}" for k in picked)]]
    rows.append(["flat LR", *(f"{100 * curve['flat_macro_f1']:.1f}" for _ in picked)])
    head = ["MF1 at τ = µ + ψσ, ψ =", *(f"{curve['psi'][k]:g}" for k in picked)]
    return (
        "## MF1 on validation rows against the threshold (paper's figure, no numbers printed)\n\n"
        "Mean over runs, each at the C that Global-INF (flat LR) chose. The paper's CLEF curve "
        "rises as τ falls; its DMOZ-SMALL curve is highest at ψ = 1.8.\n\n" + _table(head, rows)
    )


def _fan_out(results: dict[str, Any]) -> str:
    found = results["fan_out"]
    if not found["after"]:
        return ""
    rows = [
        [f"level {level}", str(before), f"{after:.1f}"]
        for level, before, after in zip(
            found["levels"], found["before"], found["after"], strict=True
        )
    ]
    return (
        "## Children of all nodes of a level (paper's fan-out figure, no numbers printed)\n\n"
        + _table(["nodes of", "before", "after Global-INF (mean of runs)"], rows)
    )


def _level_errors(results: dict[str, Any]) -> str:
    found = results["level_errors"]
    if not found:
        return ""
    printed = paper.LEVEL_ERRORS.get(results["dataset"], {})
    head = ["level"]
    for method in found:
        head += [f"{TITLES[method]} error", "paper's", "#ME", "paper's", "difference"]
    rows = []
    for k in range(len(next(iter(found.values())))):
        row = [f"L-{k + 1}"]
        for method, levels in found.items():
            error, n_wrong = levels[k]["error"], levels[k]["n_misclassified"]["mean"]
            row.append(f"{100 * error['mean']:.2f} ({100 * error['std']:.2f})")
            theirs = printed.get(method)
            row.append("–" if theirs is None else f"*p {theirs[k][0]:.2f} ({theirs[k][1]:.2f})*")
            row.append(f"{n_wrong:.1f}")
            row += (
                ["–", "–"]
                if theirs is None
                else [f"*p {theirs[k][2]}*", f"{n_wrong - theirs[k][2]:+.1f}"]
            )
        rows.append(row)
    return (
        "## Errors by level (paper's table 'Level-wise error')\n\n"
        "Error: rows that leave their true path at this level, of those right above it; #ME: rows "
        "wrong so far.\n\n" + _table(head, rows)
    )


def _by_class_size(results: dict[str, Any]) -> str:
    found = results["by_class_size"]
    printed = paper.BY_CLASS_SIZE.get(results["dataset"], {})
    methods = [m for m in ("global-inf", "lr", "ecoc") if m in results["summary"]]
    if not methods:
        return ""
    head = ["training rows", "classes"]
    for method in methods:
        head += [f"{TITLES[method]} MF1", "paper's", "diff.", "hF1", "paper's", "diff."]
    rows = []
    for size, cell in found.items():
        row = [size, str(cell["n_classes"])]
        for method in methods:
            theirs = printed.get(size, {}).get(method)
            for k, score in enumerate(("macro_f1", "hierarchical_f1")):
                ours = cell[method][score]
                row.append(f"{100 * ours['mean']:.2f} ({100 * ours['std']:.2f})")
                row += _beside(100 * ours["mean"], None if theirs is None else (theirs[k], None))
        rows.append(row)
    return "## By training rows per class (paper's table of flat baselines)\n\n" + _table(
        head, rows
    )


def _class_sizes(results: dict[str, Any]) -> str:
    bins = results["class_sizes"]["bins"]
    total = max(1, sum(bins.values()))
    rows = [[size, str(count), f"{100 * count / total:.1f} %"] for size, count in bins.items()]
    return "## Class sizes (paper's figure of distributions, no numbers printed)\n\n" + _table(
        ["training rows", "classes", "share"], rows
    )


def _runtimes(results: dict[str, Any]) -> str:
    found = results["runtimes"]
    if not found:
        return ""
    printed = paper.TRAINING_MINUTES.get(results["dataset"], {})
    rows = [
        [
            TITLES[method],
            f"{cell['C']:g}",
            f"{cell['n_models']:.0f}",
            f"{cell['train_seconds']:.2f} s",
            f"*p {printed[method]:g} min*" if method in printed else "–",
            f"{1000 * cell['predict_seconds']:.2f} ms",
        ]
        for method, cell in found.items()
    ]
    head = ["method", "C", "models kept", "training", "paper's", "prediction of all test rows"]
    return (
        "## Run time (paper's table of training time and figure of prediction time)\n\n"
        "One fit each at the C of the first run. The paper sums the time of a cluster's machines, "
        "over its whole protocol as far as it says; the two are not the same quantity.\n\n"
        + _table(head, rows)
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
