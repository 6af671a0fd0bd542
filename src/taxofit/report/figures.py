"""The figures of a page, each with a heading and a sentence that says how to read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from taxofit import plotting

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    Content = dict[str, Any]

__all__ = ["page_figures"]

THRESHOLD = "threshold-curve"
TAXONOMY = "icicle"


class Drawing(NamedTuple):
    """A figure: the part of the content it needs, its heading, how to read it, who draws it."""

    name: str
    part: str
    heading: str
    caption: str
    draw: Callable[[Content], go.Figure]


SHARED: tuple[Drawing, ...] = (
    Drawing(
        THRESHOLD,
        "threshold_curve",
        "Threshold curve",
        "Macro-F1 on the validation rows for every threshold. Where the line is above the dashed "
        "one, a hierarchy beats no hierarchy.",
        plotting.plot_threshold_curve,
    ),
    Drawing(
        "fan-out",
        "fan_out",
        "Children by level",
        "Removing a category hands its children to its parent: upper levels grow wider, lower ones "
        "thinner.",
        plotting.plot_fan_out,
    ),
    Drawing(
        "level-errors",
        "level_errors",
        "Rows lost on the way down",
        "A row that leaves its true path at one level is lost for all levels below. The lower the "
        "bars at the top, the better.",
        plotting.plot_level_errors,
    ),
    Drawing(
        "class-size",
        "by_class_size",
        "Macro-F1 by class size",
        "Classes by the number of their training rows: is it the small ones that gain?",
        plotting.plot_by_class_size,
    ),
)
OF_STUDIES: tuple[Drawing, ...] = (
    Drawing(
        "error-kinds",
        "confusion",
        "How far off mistakes are",
        "Wrong rows by where they end: at a sibling of their leaf (same parent), a cousin (same "
        "grandparent), or further off.",
        plotting.plot_error_kinds,
    ),
    Drawing(
        "confused-before",
        "confusion",
        "Most confused leaves, original taxonomy",
        "Each cell counts held-out rows of one leaf that were given another. Siblings stand next "
        "to each other.",
        plotting.plot_confused_leaves,
    ),
    Drawing(
        "confused-after",
        "confusion",
        "Most confused leaves, repaired taxonomy",
        "The same leaves and the same colours as in the chart of the original taxonomy.",
        lambda study: plotting.plot_confused_leaves(study, walk="after"),
    ),
)
OF_RUNS: tuple[Drawing, ...] = (
    Drawing(
        "class-size-hierarchical",
        "by_class_size",
        "Hierarchical F1 by class size",
        "The same classes by the F1 of whole paths, which forgives near misses.",
        lambda results: plotting.plot_by_class_size(results, score="hierarchical_f1"),
    ),
    Drawing(
        "p-values-rows",
        "significance",
        "Sign test over rows",
        "p-values of every pair of methods in the first run; dark cells are differences that "
        "chance hardly explains. They are not corrected for the number of pairs.",
        plotting.plot_p_values,
    ),
    Drawing(
        "p-values-classes",
        "significance",
        "Wilcoxon test over classes",
        "The same for macro-F1.",
        lambda results: plotting.plot_p_values(results, test="wilcoxon"),
    ),
    Drawing(
        "class-sizes",
        "class_sizes",
        "Class sizes",
        "How many classes have how many training rows, on logarithmic axes.",
        plotting.plot_class_sizes,
    ),
    Drawing(
        "run-time",
        "runtimes",
        "Run time",
        "One fit each, at the C of the first run.",
        plotting.plot_runtimes,
    ),
)


def page_figures(content: Content) -> dict[str, dict[str, Any]]:
    """Return heading, caption and plotly's JSON of every figure that a content allows, by name."""
    is_study = content.get("kind") == "study"
    drawings = SHARED + (OF_STUDIES if is_study else OF_RUNS)
    figures = {
        drawing.name: {
            "heading": drawing.heading,
            "caption": drawing.caption,
            "figure": _bare(drawing.draw(content)),
        }
        for drawing in drawings
        if _has(content, drawing.part)
    }
    if is_study:
        figures[TAXONOMY] = {
            "heading": "The taxonomy at a glance",
            "caption": "",
            "figure": _bare(plotting.plot_taxonomy(content)),
        }
    return figures


def _has(content: Content, part: str) -> bool:
    found = content.get(part)
    if part == "fan_out":
        return bool(found and found["after"])
    if part == "confusion":
        return bool(found and found["leaves"])
    return bool(found)


def _bare(figure: go.Figure) -> dict[str, Any]:
    """Return a figure without its title, which the page sets as a heading, and without a size."""
    figure.update_layout(title=None, margin={"t": 4 if figure.data[0].type == "icicle" else 36})
    plain: dict[str, Any] = json.loads(figure.to_json())
    return plain
