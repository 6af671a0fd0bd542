"""Figures of mistakes: between which leaves, and how far off."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from taxofit.plotting.style import (
    DIFFICULTY_SCALE,
    colour_of,
    method_title,
    plain_text,
    short,
    styled,
    titled,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    Study = dict[str, Any]

__all__ = ["plot_confused_leaves", "plot_error_kinds"]

KINDS = {
    "sibling": "sibling",
    "cousin": "cousin",
    "further": "further off",
}


def plot_error_kinds(study: Study) -> go.Figure:
    """Return how many wrong validation rows ended at siblings, cousins, or further away, as bars.

    Examples
    --------
    >>> figure = plot_error_kinds(
    ...     {"confusion": {"kinds": {"td-lr": {"sibling": 4, "cousin": 1, "further": 0}}}}
    ... )
    >>> figure.data[0].y
    (4, 1, 0)
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for method, counts in study["confusion"]["kinds"].items():
        figure.add_bar(
            x=[KINDS[kind] for kind in counts],
            y=list(counts.values()),
            name=method_title(method, study),
            marker_color=colour_of(method),
            hovertemplate="%{y} rows",
        )
    return styled(figure, titled(study, "where wrong rows end"), y="wrong rows")


def plot_confused_leaves(
    study: Study, *, walk: Literal["before", "after"] = "before", n_leaves: int = 14
) -> go.Figure:
    """Return the leaves that are most often taken for one another, as a heat map of rows.

    Leaves stand in the taxonomy's order, so that siblings are neighbours: mistakes between siblings
    lie near the diagonal. The leaves are those of the most frequent mistakes, before and after
    repair taken together, so that both maps show the same ones.

    Parameters
    ----------
    study : dict
    walk : {"before", "after"}
        On the original taxonomy, or on the repaired one.
    n_leaves : int
        How many leaves to show.
    """
    import plotly.graph_objects as go

    pairs, nodes = study["confusion"]["leaves"], study["nodes"]
    chosen: dict[int, None] = {}
    for true, predicted, *_ in pairs:
        if len({*chosen, true, predicted}) <= n_leaves:
            chosen |= {true: None, predicted: None}
    leaves = sorted(chosen, key=lambda leaf: path_of(study, leaf))
    place = {leaf: i for i, leaf in enumerate(leaves)}
    rows = [[0] * len(leaves) for _ in leaves]
    for true, predicted, before, after in pairs:
        if true in place and predicted in place:
            rows[place[true]][place[predicted]] = before if walk == "before" else after
    highest = max((max(before, after) for *_, before, after in pairs), default=1)
    names = [nodes["name"][leaf] for leaf in leaves]
    figure = go.Figure(
        go.Heatmap(
            z=rows,
            zmin=0,
            zmax=max(highest, 1),
            colorscale=DIFFICULTY_SCALE,
            meta="difficulty",  # the report's dark theme has a scale of its own for these
            colorbar={
                "title": {"text": "rows"},
                "thickness": 12,
                "dtick": max(1, math.ceil(highest / 5)),
            },
            xgap=1,
            ygap=1,
            customdata=[[[plain_text(t), plain_text(p)] for p in names] for t in names],
            hovertemplate="%{z} of %{customdata[0]}<br>given %{customdata[1]}<extra></extra>",
        )
    )
    ticks = {
        "tickvals": list(range(len(names))),
        "ticktext": [plain_text(short(name, 20)) for name in names],
        "tickfont": {"size": 11},
        "showgrid": False,
    }
    figure.update_xaxes(**ticks, tickangle=-50)
    figure.update_yaxes(**ticks, autorange="reversed")
    named = {"before": "on the original taxonomy", "after": "on the repaired taxonomy"}[walk]
    return styled(figure, titled(study, f"most confused leaves, {named}"), "given", "true")


def path_of(study: Study, node: int) -> tuple[int, ...]:
    """Return the nodes from the root down to a node.

    Examples
    --------
    >>> path_of({"nodes": {"parent": [-1, 0, 1]}}, 2)
    (0, 1, 2)
    """
    parent, path = study["nodes"]["parent"], []
    while node >= 0:
        path.append(node)
        node = parent[node]
    return tuple(reversed(path))
