"""How all figures look: colours that people with any colour vision tell apart, and one layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taxofit.methods import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import plotly.graph_objects as go

__all__ = [
    "COLOURS",
    "DIFFICULTY_SCALE",
    "INK",
    "MUTED",
    "colour_of",
    "error_bars",
    "method_title",
    "percent",
    "plain_text",
    "short",
    "styled",
    "titled",
]

FONT = "-apple-system, BlinkMacSystemFont, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
INK, MUTED, GRID = "#1f2933", "#8a97a5", "#e4e8ed"
# Okabe and Ito's colours.
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
OTHER = "#009e73"
# Light to dark in one hue: it reads the same in grey.
DIFFICULTY_SCALE = ["#f4f1e8", "#f6d693", "#ef9f4b", "#cb5c1b", "#7c2a06"]
AXIS = {
    "gridcolor": GRID,
    "zerolinecolor": GRID,
    "automargin": True,
    "title": {"font": {"size": 13}, "standoff": 8},
}
TEMPLATE = {
    "layout": {
        "font": {"family": FONT, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "barmode": "group",
        "bargap": 0.25,
        "bargroupgap": 0.06,
        "hoverlabel": {"font": {"family": FONT}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 20, "t": 84, "b": 56},
        "xaxis": AXIS,
        "yaxis": AXIS,
    }
}


def styled(figure: go.Figure, title: str, x: str = "", y: str = "") -> go.Figure:
    """Return the figure with the common look, a title and names of its axes."""
    figure.update_layout(template=TEMPLATE, title={"text": title, "x": 0, "xref": "paper"})
    if any(trace.type == "bar" for trace in figure.data):
        figure.update_xaxes(showgrid=False)
    if x:
        figure.update_xaxes(title={"text": x})
    if y:
        figure.update_yaxes(title={"text": y})
    return figure


def titled(results: Mapping[str, Any], title: str) -> str:
    """Return a title with the name of the data before it, where there is one."""
    return f"{plain_text(results['dataset'])}: {title}" if results.get("dataset") else title


def method_title(method: str, results: Mapping[str, Any]) -> str:
    """Return what people call a method; results may have names of their own under ``titles``.

    Examples
    --------
    >>> method_title("global-inf", {}), method_title("lr", {"titles": {"lr": "Flat"}})
    ('Global-INF', 'Flat')
    """
    return str(results.get("titles", {}).get(method, TITLES.get(method, method)))


def colour_of(method: str) -> str:
    """Return the colour of a method."""
    return COLOURS.get(method, OTHER)


def percent(values: Iterable[float]) -> list[float]:
    """Return fractions as percentages."""
    return [100 * value for value in values]


def error_bars(cells: Iterable[Mapping[str, float]], *, scale: float = 1.0) -> dict[str, Any]:
    """Return plotly's error bars of standard deviations; hidden where all are zero."""
    spread = [scale * (cell["std"] or 0.0) for cell in cells]
    return {"array": spread, "visible": any(spread)}


def plain_text(label: object) -> str:
    """Return a label as text that plotly shows as it is; plotly reads a little HTML otherwise.

    Examples
    --------
    >>> plain_text("<b>Cups</b> & mugs")
    '&lt;b&gt;Cups&lt;/b&gt; &amp; mugs'
    """
    return str(label).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(label: object, n: int = 24) -> str:
    """Return a label cut to n characters, for axes."""
    text = str(label)
    return text if len(text) <= n else f"{text[: n - 1].rstrip()}…"
