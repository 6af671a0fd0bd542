"""Figures of results, with plotly: each function takes the dictionary of results.json.

plotly is an optional extra (``pip install 'taxofit[report]'``) and is imported where it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.methods import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import plotly.graph_objects as go

    Results = dict[str, Any]

__all__ = [
    "FIGURES",
    "plot_by_class_size",
    "plot_class_sizes",
    "plot_fan_out",
    "plot_level_errors",
    "plot_p_values",
    "plot_runtimes",
    "plot_threshold_curve",
    "write_figures",
]

INK, MUTED, GRID = "#22313f", "#6b7a88", "#e6eaee"
# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = {
    "td-lr": "#56b4e9",
    "tlf": "#e69f00",
    "blf": "#f0e442",
    "mlf": "#999999",
    "mta": "#cc79a7",
    "level-inf": "#009e73",
    "global-inf": "#0072b2",
    "lr": "#d55e00",
    "ecoc": "#7a5195",
}


def plot_threshold_curve(results: Results) -> go.Figure:
    """Return validation MF1 against ψ, every run thin and their mean thick, with flat LR dashed."""
    import plotly.graph_objects as go

    curve = results["threshold_curve"]
    figure = go.Figure()
    for run in curve["runs"]:
        figure.add_scatter(
            x=curve["psi"],
            y=_percent(run["macro_f1"]),
            name=f"seed {run['seed']}, C={run['C']:g}",
            line={"color": COLOURS["global-inf"], "width": 1},
            opacity=0.35,
        )
    figure.add_scatter(
        x=curve["psi"],
        y=_percent(curve["macro_f1"]),
        name="Global-INF, mean",
        line={"color": COLOURS["global-inf"], "width": 3},
    )
    figure.add_hline(
        y=100 * curve["flat_macro_f1"],
        line={"color": COLOURS["lr"], "dash": "dash"},
        annotation_text="flat LR",
        annotation_font_color=COLOURS["lr"],
    )
    return _styled(
        figure,
        f"{results['dataset']}: the threshold, on validation rows",
        "ψ: nodes with f* above µ + ψσ are removed",
        "macro-F1 (%)",
    )


def plot_fan_out(results: Results) -> go.Figure:
    """Return the number of children per level before and after Global-INF, as bars."""
    import plotly.graph_objects as go

    found = results["fan_out"]
    levels = [f"level {level}" if level else "root" for level in found["levels"]]
    figure = go.Figure()
    figure.add_bar(x=levels, y=found["before"], name="before", marker_color=MUTED)
    figure.add_bar(
        x=levels, y=found["after"], name="after Global-INF", marker_color=COLOURS["global-inf"]
    )
    return _styled(
        figure, f"{results['dataset']}: children by level", "children of", "number of children"
    )


def plot_p_values(results: Results, *, test: str = "sign") -> go.Figure:
    """Return the p-values of every pair of methods as a heat map.

    Parameters
    ----------
    results : dict
    test : {"sign", "wilcoxon"}
        Over rows (µF1) or over classes (MF1).
    """
    import plotly.graph_objects as go

    found = results["significance"]
    names = [TITLES.get(name, name) for name in found["methods"]]
    values = found[f"{test}_p_values"]
    figure = go.Figure(
        go.Heatmap(
            x=names,
            y=names,
            z=values,
            zmin=0,
            zmax=0.1,
            colorscale=[[0, INK], [0.5, "#8fa3b5"], [1, "#f4f6f8"]],
            colorbar={"title": "p"},
            text=[[f"{p:.3f}" for p in line] for line in values],
            texttemplate="%{text}",
        )
    )
    figure.update_yaxes(autorange="reversed")
    title = {"sign": "sign test (µF1)", "wilcoxon": "Wilcoxon test (MF1)"}[test]
    return _styled(figure, f"{results['dataset']}: {title}, run of seed {found['run']}", "", "")


def plot_level_errors(results: Results) -> go.Figure:
    """Return the misclassified rows down to each level, TD-LR against Global-INF."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for method, levels in results["level_errors"].items():
        figure.add_bar(
            x=[f"level {level['level']}" for level in levels],
            y=[level["n_misclassified"]["mean"] for level in levels],
            error_y={"array": [level["n_misclassified"]["std"] for level in levels]},
            name=TITLES[method],
            marker_color=COLOURS[method],
            customdata=[100 * level["error"]["mean"] for level in levels],
            hovertemplate="%{y:.1f} rows wrong so far, %{customdata:.1f} % of this level's",
        )
    title = f"{results['dataset']}: rows lost on the way down"
    return _styled(figure, title, "", "misclassified test rows so far")


def plot_by_class_size(results: Results, *, score: str = "macro_f1") -> go.Figure:
    """Return MF1 or hF1 by training rows per class, Global-INF against the flat methods.

    Parameters
    ----------
    results : dict
    score : {"macro_f1", "hierarchical_f1"}
    """
    import plotly.graph_objects as go

    found = results["by_class_size"]
    figure = go.Figure()
    for method in ("global-inf", "lr", "ecoc"):
        cells = [cell[method][score] for cell in found.values() if method in cell]
        if cells:
            figure.add_bar(
                x=[f"{size} ({cell['n_classes']} classes)" for size, cell in found.items()],
                y=_percent(cell["mean"] for cell in cells),
                error_y={"array": _percent(cell["std"] for cell in cells)},
                name=TITLES[method],
                marker_color=COLOURS[method],
            )
    named = {"macro_f1": "macro-F1", "hierarchical_f1": "hierarchical F1"}[score]
    title = f"{results['dataset']}: {named} by class size"
    return _styled(figure, title, "training rows per class", f"{named} (%)")


def plot_class_sizes(results: Results) -> go.Figure:
    """Return how many classes have how many training rows, on logarithmic axes."""
    import plotly.graph_objects as go

    found = results["class_sizes"]
    figure = go.Figure()
    for name, (low, high), colour in (
        ("≤ 5 rows", (0, 5), "#d55e00"),
        ("6 to 10", (6, 10), INK),
        ("more", (11, float("inf")), COLOURS["global-inf"]),
    ):
        picked = [
            (n_rows, n)
            for n_rows, n in zip(found["n_rows"], found["n_classes"], strict=True)
            if low <= n_rows <= high
        ]
        figure.add_scatter(
            x=[max(n_rows, 0.5) for n_rows, _ in picked],  # a class without rows has its place, too
            y=[n for _, n in picked],
            mode="markers",
            name=name,
            marker={"color": colour, "size": 7},
        )
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    title = f"{results['dataset']}: class sizes"
    return _styled(figure, title, "training rows of a class", "number of classes")


def plot_runtimes(results: Results) -> go.Figure:
    """Return training and prediction time of LR and Global-INF fitted on their own."""
    from plotly.subplots import make_subplots

    found = results["runtimes"]
    figure = make_subplots(
        cols=2, subplot_titles=("training (s)", "prediction of all test rows (ms)")
    )
    for column, (key, scale) in enumerate((("train_seconds", 1), ("predict_seconds", 1000)), 1):
        figure.add_bar(
            x=[TITLES[method] for method in found],
            y=[scale * cell[key] for cell in found.values()],
            marker_color=[COLOURS[method] for method in found],
            showlegend=False,
            row=1,
            col=column,
        )
    return _styled(figure, f"{results['dataset']}: run time", "", "")


FIGURES: dict[str, tuple[str, Callable[[Results], go.Figure]]] = {
    "threshold-curve": ("threshold_curve", plot_threshold_curve),
    "fan-out": ("fan_out", plot_fan_out),
    "p-values-micro-f1": ("significance", plot_p_values),
    "p-values-macro-f1": ("significance", lambda r: plot_p_values(r, test="wilcoxon")),
    "level-errors": ("level_errors", plot_level_errors),
    "class-size-macro-f1": ("by_class_size", plot_by_class_size),
    "class-size-hierarchical-f1": (
        "by_class_size",
        lambda r: plot_by_class_size(r, score="hierarchical_f1"),
    ),
    "class-sizes": ("class_sizes", plot_class_sizes),
    "run-time": ("runtimes", plot_runtimes),
}
"""File name, the part of the results that a figure needs, and the function that draws it."""


def write_figures(results: Results, folder: str | Path) -> list[Path]:
    """Write every figure that the results allow as HTML; return the files.

    plotly's script is written once, beside them, so they open without a network.
    """
    import plotly  # noqa: F401  (said missing before a folder is made)

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (part, draw) in FIGURES.items():
        if not results.get(part) or (part == "fan_out" and not results[part]["after"]):
            continue
        file = folder / f"{name}.html"
        draw(results).write_html(file, include_plotlyjs="directory")
        written.append(file)
    return written


def _percent(values: Iterable[float]) -> list[float]:
    return [100 * value for value in values]


def _styled(figure: go.Figure, title: str, x: str, y: str) -> go.Figure:
    figure.update_layout(
        title=title,
        template="plotly_white",
        font={"family": "Inter, Helvetica, Arial, sans-serif", "color": INK},
        barmode="group",
        legend={"orientation": "h", "y": -0.2},
        margin={"l": 60, "r": 20, "t": 60, "b": 60},
    )
    if x or y:
        figure.update_xaxes(title=x, gridcolor=GRID)
        figure.update_yaxes(title=y, gridcolor=GRID)
    return figure
