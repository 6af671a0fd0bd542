"""Every figure that results allow, as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.plotting.scores import (
    plot_by_class_size,
    plot_class_sizes,
    plot_fan_out,
    plot_level_errors,
    plot_p_values,
    plot_runtimes,
    plot_threshold_curve,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    Results = dict[str, Any]

__all__ = ["FIGURES", "write_figures"]

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
