"""Figures of scores: each function takes the dictionary of results.json, or a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taxofit.plotting.style import (
    COLOURS,
    INK,
    MUTED,
    colour_of,
    error_bars,
    method_title,
    percent,
    styled,
    titled,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    Results = dict[str, Any]

__all__ = [
    "plot_by_class_size",
    "plot_class_sizes",
    "plot_fan_out",
    "plot_level_errors",
    "plot_p_values",
    "plot_runtimes",
    "plot_threshold_curve",
]


def plot_threshold_curve(results: Results) -> go.Figure:
    """Return validation MF1 against ψ, every run thin and their mean thick, with flat LR dashed."""
    import plotly.graph_objects as go

    curve = results["threshold_curve"]
    figure = go.Figure()
    for run in curve["runs"]:
        figure.add_scatter(
            x=curve["psi"],
            y=percent(run["macro_f1"]),
            name=f"seed {run['seed']}, C={run['C']:g}",
            line={"color": COLOURS["global-inf"], "width": 1},
            opacity=0.35,
            showlegend=False,
        )
    figure.add_scatter(
        x=curve["psi"],
        y=percent(curve["macro_f1"]),
        name="Global-INF, mean" if curve["runs"] else "Global-INF",
        line={"color": COLOURS["global-inf"], "width": 3},
        hovertemplate="ψ = %{x:.1f}: %{y:.2f} %<extra></extra>",
    )
    figure.add_scatter(
        x=[curve["psi"][0], curve["psi"][-1]],
        y=percent([curve["flat_macro_f1"]] * 2),
        name="flat LR",
        mode="lines",
        line={"color": COLOURS["lr"], "dash": "dash", "width": 2},
        hovertemplate="flat: %{y:.2f} %<extra></extra>",
    )
    return styled(
        figure,
        titled(results, "the threshold, on validation rows"),
        "ψ: nodes with f* above µ + ψσ are removed",
        "macro-F1 (%)",
    )


def plot_fan_out(results: Results) -> go.Figure:
    """Return the number of children per level before and after repair, as bars."""
    import plotly.graph_objects as go

    found, method = results["fan_out"], results.get("method", "global-inf")
    levels = [f"level {level}" if level else "root" for level in found["levels"]]
    figure = go.Figure()
    figure.add_bar(x=levels, y=found["before"], name="before", marker_color=MUTED)
    figure.add_bar(
        x=levels,
        y=found["after"],
        name="after" if "titles" in results else f"after {method_title(method, results)}",
        marker_color=colour_of(method),
    )
    title = titled(results, "children by level")
    return styled(figure, title, "children of", "number of children")


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
    names = [method_title(name, results) for name in found["methods"]]
    values = found[f"{test}_p_values"]
    figure = go.Figure(
        go.Heatmap(
            x=names,
            y=names,
            z=values,
            zmin=0,
            zmax=0.1,
            colorscale=[[0, INK], [0.5, "#8fa3b5"], [1, "#f4f6f8"]],
            colorbar={"title": {"text": "p"}, "thickness": 12},
            text=[[_p_value(p) for p in line] for line in values],
            texttemplate="%{text}",
            textfont={"size": 11},
            hovertemplate="%{y} against %{x}: p = %{z:.2g}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed")
    title = {"sign": "sign test (µF1)", "wilcoxon": "Wilcoxon test (MF1)"}[test]
    return styled(figure, titled(results, f"{title}, run of seed {found['run']}"))


def _p_value(p: float) -> str:
    return "<.001" if p < 0.001 else "1" if p == 1 else f"{p:.3f}"[1:]


def plot_level_errors(results: Results) -> go.Figure:
    """Return the misclassified rows down to each level, method by method."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for method, levels in results["level_errors"].items():
        figure.add_bar(
            x=[f"level {level['level']}" for level in levels],
            y=[level["n_misclassified"]["mean"] for level in levels],
            error_y=error_bars([level["n_misclassified"] for level in levels]),
            name=method_title(method, results),
            marker_color=colour_of(method),
            customdata=[100 * level["error"]["mean"] for level in levels],
            hovertemplate="%{y:,.4~g} rows wrong so far, %{customdata:.1f} % of this level's",
        )
    return styled(figure, titled(results, "rows lost on the way down"), y="wrong rows so far")


def plot_by_class_size(results: Results, *, score: str = "macro_f1") -> go.Figure:
    """Return MF1 or hF1 by training rows per class, method by method.

    Parameters
    ----------
    results : dict
    score : {"macro_f1", "hierarchical_f1"}
    """
    import plotly.graph_objects as go

    found = results["by_class_size"]
    methods = dict.fromkeys(
        name for cell in found.values() for name in cell if not name.startswith("n_")
    )
    figure = go.Figure()
    for method in methods:
        cells = {size: cell[method][score] for size, cell in found.items() if method in cell}
        figure.add_bar(
            x=[f"{_size(size)}<br>{found[size]['n_classes']} classes" for size in cells],
            y=percent(cell["mean"] for cell in cells.values()),
            error_y=error_bars(cells.values(), scale=100),
            name=method_title(method, results),
            marker_color=colour_of(method),
            hovertemplate="%{y:.2f} %",
        )
    named = {"macro_f1": "macro-F1", "hierarchical_f1": "hierarchical F1"}[score]
    title = titled(results, f"{named} by class size")
    return styled(figure, title, "training rows per class", f"{named} (%)")


def _size(name: str) -> str:
    return name.replace("<=", "≤ ").replace(">", "&gt; ")


def plot_class_sizes(results: Results) -> go.Figure:
    """Return how many classes have how many training rows, on logarithmic axes."""
    import plotly.graph_objects as go

    found = results["class_sizes"]
    figure = go.Figure()
    for name, (low, high), colour, symbol in (
        ("≤ 5 rows", (0, 5), COLOURS["lr"], "circle"),
        ("6 to 10", (6, 10), COLOURS["level-inf"], "diamond"),
        ("more", (11, float("inf")), COLOURS["global-inf"], "square"),
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
            marker={"color": colour, "size": 7, "symbol": symbol},
        )
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    title = titled(results, "class sizes")
    return styled(figure, title, "training rows of a class", "number of classes")


def plot_runtimes(results: Results) -> go.Figure:
    """Return training and prediction time of LR and Global-INF fitted on their own."""
    from plotly.subplots import make_subplots

    found = results["runtimes"]
    figure = make_subplots(
        cols=2, subplot_titles=("training (s)", "prediction of all test rows (ms)")
    )
    for column, (key, scale) in enumerate((("train_seconds", 1), ("predict_seconds", 1000)), 1):
        figure.add_bar(
            x=[method_title(method, results) for method in found],
            y=[scale * cell[key] for cell in found.values()],
            marker_color=[colour_of(method) for method in found],
            showlegend=False,
            row=1,
            col=column,
        )
    return styled(figure, titled(results, "run time"))
