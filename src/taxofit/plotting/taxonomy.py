"""The taxonomy as an icicle, coloured by how hard its nodes are to tell from the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from taxofit.errors import TaxonomyError
from taxofit.plotting.style import DIFFICULTY_SCALE, plain_text, short, styled, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

    Study = dict[str, Any]

__all__ = ["plot_taxonomy"]

SMALLEST_SHARE = 0.004  # of the rows shown; narrower sectors are put together
MAX_LEVELS = 2
REMOVED = "✕ "
UNKNOWN = "#dfe2e0"
EASIEST, HARDEST = -1.0, 3.0  # (f* - µ)/σ at the ends of the scale, the upper one at the least


def plot_taxonomy(study: Study, *, root: str | int | None = None) -> go.Figure:
    """Return the taxonomy as an icicle: width for training rows, colour for f*.

    Colour is (f* - µ)/σ, which is the ψ below which Global-INF removes a node. Removed nodes are
    hatched and have a cross before their name. Two levels are shown at a time, and nodes of very
    few rows are put together, so that a taxonomy of any size can be drawn.

    Parameters
    ----------
    study : dict
        From :func:`taxofit.study.study_fit`.
    root : str or int, optional
        Name or number of the node to start from; the root of the taxonomy by default.

    Examples
    --------
    >>> from taxofit.study import study_fit
    >>> from taxofit import TaxonomyClassifier
    >>> from taxofit.datasets import make_shop_catalogue
    >>> shop = make_shop_catalogue(500)
    >>> model = TaxonomyClassifier(shop.taxonomy, C=1.0, encoder="words").fit(shop.texts, shop.y)
    >>> plot_taxonomy(study_fit(model)).data[0].type
    'icicle'
    """
    import plotly.graph_objects as go

    nodes, top = study["nodes"], _node(study, root)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(nodes["parent"]):
        children.setdefault(parent, []).append(node)
    removed = set(nodes["removed"])
    figure = go.Figure(
        go.Icicle(
            branchvalues="remainder",
            tiling={"orientation": "h"},
            pathbar={"visible": False},
            maxdepth=MAX_LEVELS + 1,
            sort=False,
            marker={
                "line": {"width": 1, "color": "white"},
                "pattern": {"fgcolor": "#1f2933", "fillmode": "replace", "solidity": 0.12},
            },
            leaf={"opacity": 1},
            textposition="middle left",
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    sectors = _sectors(study, top, children)
    (trace,) = figure.data
    trace.ids = [str(sector["id"]) for sector in sectors]
    trace.parents = ["" if s["parent"] is None else str(s["parent"]) for s in sectors]
    trace.values = [sector["value"] for sector in sectors]
    trace.labels = [
        REMOVED * (s["id"] in removed) + plain_text(short(s["name"], 40)) for s in sectors
    ]
    hardest = _hardest(study, children)
    trace.marker.colors = [_colour(study, s["id"], hardest) for s in sectors]
    # `replace` with both colours given: plotly warns of arrays where it has to find a contrast.
    trace.marker.pattern.bgcolor = trace.marker.colors
    trace.marker.pattern.shape = ["/" if s["id"] in removed else "" for s in sectors]
    trace.customdata = [_description(study, s, removed) for s in sectors]
    figure.update_layout(
        uniformtext={"minsize": 11, "mode": "hide"}, margin={"l": 8, "r": 8, "t": 56, "b": 8}
    )
    return styled(figure, titled(study, "the taxonomy, the darker the higher f*"))


def _node(study: Study, root: str | int | None) -> int:
    names = study["nodes"]["name"]
    if root is None:
        return 0
    if isinstance(root, int) and 0 <= root < len(names):
        return root
    if root not in names:
        raise TaxonomyError(f"the study has no node {root!r}")
    return int(names.index(root))


def _sectors(study: Study, top: int, children: dict[int, list[int]]) -> list[dict[str, Any]]:
    """Return what is shown under a node, level by level; small siblings as one sector."""
    rows, names = study["nodes"]["rows"], study["nodes"]["name"]
    smallest = SMALLEST_SHARE * rows[top]
    sectors = [{"id": top, "parent": None, "name": names[top], "value": 0}]
    shown = [top]
    for level in range(MAX_LEVELS):
        below = []
        for node in shown:
            large = [child for child in children.get(node, ()) if rows[child] >= smallest]
            n_small = len(children.get(node, ())) - len(large)
            for child in large:
                is_cut = level == MAX_LEVELS - 1 or child not in children
                sectors.append(
                    {
                        "id": child,
                        "parent": node,
                        "name": names[child],
                        "value": rows[child] if is_cut else 0,
                    }
                )
            if n_small:
                left = rows[node] - sum(rows[child] for child in large)
                small = {"id": f"{node}-more", "parent": node, "name": f"{n_small} more"}
                sectors.append({**small, "value": left})
            below += large
        shown = below
    return sectors


def _difficulty(study: Study, node: Any) -> float | None:
    """Return (f* - µ)/σ of a node; None where there is none."""
    candidates = study["candidates"]
    objective = study["nodes"]["objective"][node] if isinstance(node, int) else None
    if objective is None or not candidates["deviation"]:
        return None
    return float((objective - candidates["mean"]) / candidates["deviation"])


def _hardest(study: Study, children: dict[int, list[int]]) -> float:
    """Return where the scale ends: at the hardest inner node."""
    found = (_difficulty(study, node) for node in children if node > 0)
    return max(HARDEST, *(value for value in found if value is not None), HARDEST)


def _colour(study: Study, node: Any, hardest: float) -> str:
    """Return the colour of a node's difficulty; grey where there is none."""
    from plotly.colors import sample_colorscale

    difficulty = _difficulty(study, node)
    if difficulty is None:
        return UNKNOWN
    # The root keeps the few hardest nodes from making all others look alike.
    share = math.sqrt(max(difficulty - EASIEST, 0.0) / (hardest - EASIEST))
    (colour,) = sample_colorscale(DIFFICULTY_SCALE, min(share, 1.0))
    return str(colour)


def _description(study: Study, sector: dict[str, Any], removed: set[int]) -> str:
    node = sector["id"]
    if not isinstance(node, int):
        return f"{sector['name']}, {sector['value']:,} rows"
    lines = [f"<b>{plain_text(sector['name'])}</b>", f"{study['nodes']['rows'][node]:,} rows"]
    objective = study["nodes"]["objective"][node]
    if objective is not None:
        lines.append(f"f* {objective:,.4g}, higher than {study['nodes']['percentile'][node]} %")
    return "<br>".join(lines + ["removed"] * (node in removed))
