"""The parts of a page, as HTML: headline, threshold, taxonomy, charts, methods."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from taxofit.methods import TITLES
from taxofit.report.figures import TAXONOMY, THRESHOLD
from taxofit.report.headline import SCORES, run_headline, study_headline, study_tiles
from taxofit.report.tables import (
    facts,
    methods_of_runs,
    methods_of_study,
    significance_of_study,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taxofit.report.headline import Tile

    Figures = Mapping[str, Mapping[str, Any]]

__all__ = ["Body", "of_results", "of_study"]

FLATTERED = (
    "The same rows chose {chosen}, so these figures flatter the model a little. To be sure, score "
    "rows that it has never seen: <code>taxofit evaluate MODEL FILE</code>"
)


@dataclass(frozen=True)
class Body:
    """The changing parts of a page."""

    title: str
    navigation: str
    main: str


def of_study(study: Mapping[str, Any], figures: Figures) -> Body:
    """Return the page of a fitted model."""
    name = str(study["dataset"]) or "A taxonomy"
    parts = [
        ("overview", "Overview", _hero(study)),
        ("threshold", "Threshold", _threshold(study, figures)),
        ("taxonomy", "Taxonomy", _taxonomy(study)),
        ("charts", "Charts", _charts(figures, "On the held-out rows")),
        ("methods", "Methods", _methods_of_study(study)),
    ]
    if not study["data"]["n_internal"]:
        parts = [part for part in parts if part[0] != "threshold"]
    return _body(f"{name}: taxofit report", parts)


def of_results(results: Mapping[str, Any], figures: Figures) -> Body:
    """Return the page of a reproduction."""
    name = str(results["dataset"])
    first, second, third = run_headline(results)
    overview = (
        f'<p class="eyebrow">{escape(name)} · the paper\'s protocol</p><h1>{escape(first)}</h1>'
        f'<p class="lead">{escape(second)}</p><p>{escape(third)}</p>{methods_of_runs(results)}'
        f"{_notes(results.get('notes', ()))}"
    )
    parts = [
        ("overview", "Overview", overview),
        ("charts", "Charts", _charts(figures, "The paper's figures")),
        ("methods", "Settings", _settings_of_results(results)),
    ]
    return _body(f"{name}: taxofit report", parts)


def _body(title: str, parts: Sequence[tuple[str, str, str]]) -> Body:
    links = "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name, _ in parts)
    main = "".join(
        f'<section id="{anchor}" aria-label="{name}">{html}</section>'
        for anchor, name, html in parts
    )
    return Body(title, links, main)


def _hero(study: Mapping[str, Any]) -> str:
    removed, brought, chance = study_headline(study)
    data = study["data"]
    eyebrow = (
        f"{escape(str(study['dataset']) or 'taxonomy')} · {data['n_rows']:,} rows · "
        f"{data['n_leaves']:,} leaves · {escape(TITLES.get(study['method'], study['method']))}"
    )
    tiles = "".join(_tile(tile) for tile in study_tiles(study))
    is_tuned = study["settings"].get("C") == "auto"
    chosen = "C and the nodes to remove" if is_tuned else "the nodes to remove"
    return (
        f'<p class="eyebrow">{eyebrow}</p><h1>{escape(removed)}</h1>'
        f'<p class="lead">{escape(brought)}</p><p>{escape(chance)}</p>'
        f'<div class="tiles">{tiles}</div>'
        f'<p class="note">{FLATTERED.format(chosen=chosen)}</p>'
    )


def _tile(tile: Tile) -> str:
    score = tile.score
    mood, arrow = (
        ("same", "=")
        if not tile.change
        else (
            "better" if score.is_better(tile.change) else "worse",
            "▲" if tile.change > 0 else "▼",
        )
    )
    return (
        f'<div class="tile"><p class="tile-name">{escape(score.sign)} '
        f"<span>{escape(score.meaning)}</span></p>"
        f'<p class="tile-value">{score.show(tile.value)}</p>'
        f'<p class="tile-change {mood}"><span aria-hidden="true">{arrow}</span> '
        f"{score.show_change(tile.change)} <span>against the original</span></p>"
        f'<p class="tile-rivals">original {score.show(tile.original)} · '
        f"flat {score.show(tile.flat)}</p></div>"
    )


def _threshold(study: Mapping[str, Any], figures: Figures) -> str:
    method = study["method"]
    fitted = (
        f"The model was fitted with ψ = {study['psi']:g}."
        if method == "global-inf" and isinstance(study["psi"], (int, float))
        else f"The model was fitted with {escape(TITLES.get(method, method))}; the slider shows "
        f"what Global-INF with greedy walks would do."
    )
    last = len(study["candidates"]["psi"]) - 1
    scores = "".join(
        f'<div class="tile"><p class="tile-name">{score.sign} <span>{score.meaning}</span></p>'
        f'<p class="tile-value" data-score="{name}">–</p>'
        f'<p class="tile-change" data-change="{name}"></p></div>'
        for name, score in SCORES.items()
    )
    return (
        "<h2>Move the threshold</h2>"
        "<p>Every node has an objective f*: how badly its rows are told apart from all others on "
        "the held-out rows. An inner category goes where f* is above µ + ψσ, mean and standard "
        f"deviation over all nodes. {fitted}</p>"
        '<div class="split"><div class="card">'
        '<label class="slider-label" for="psi">ψ = <output id="psi-value" for="psi">–</output>'
        '</label><div class="slider"><input type="range" id="psi" min="0" '
        f'max="{last}" step="1"><span id="psi-fitted" class="slider-mark" hidden>fitted</span>'
        '</div><p class="slider-ends"><span>0: remove more</span><span>3: remove less</span></p>'
        f'<div class="tiles compact">{scores}</div>'
        '<p class="muted small">Changes are against the original taxonomy.</p>'
        '<p><button type="button" id="psi-reset" class="quiet">Back to the fitted model</button>'
        "</p></div>"
        f"{_figure(figures, THRESHOLD)}</div>"
        '<div class="card"><h3 id="gone-heading" aria-live="polite">–</h3>'
        '<div id="gone" class="chips" role="group" aria-labelledby="gone-heading"></div></div>'
    )


def _taxonomy(study: Mapping[str, Any]) -> str:
    n_nodes = study["data"]["n_nodes"]
    return (
        "<h2>Explore the taxonomy</h2>"
        "<p>Size is the number of training rows; colour tells how hard the rows of a node are to "
        "tell from all others. Removed categories are hatched and marked ✕. Click a block to zoom "
        "in, the leftmost one to go back.</p>"
        '<div class="controls"><div class="switch" role="radiogroup" aria-label="Taxonomy shown">'
        '<label><input type="radio" name="view" value="before" checked><span>Before</span></label>'
        '<label><input type="radio" name="view" value="after"><span>After</span></label></div>'
        '<div class="search"><label class="hidden" for="search">Find a category</label>'
        f'<input type="search" id="search" placeholder="Find one of {n_nodes:,} nodes" '
        'autocomplete="off" spellcheck="false">'
        '<p id="search-count" class="hidden" aria-live="polite"></p>'
        '<ul id="search-results" hidden></ul></div></div>'
        '<figure class="card"><p id="zoom-path" class="crumbs"></p>'
        f'<div class="chart tall" id="{TAXONOMY}" data-figure="{TAXONOMY}" role="img" '
        'aria-label="The taxonomy as an icicle; the tree below holds the same."></div></figure>'
        '<div class="split explorer"><div class="card"><h3 id="tree-heading">All nodes</h3>'
        '<p class="legend"><span class="swatches" id="legend-scale" aria-hidden="true"></span>'
        "<span>easy to tell apart → hard (f*)</span></p>"
        '<ul id="tree" role="tree" aria-labelledby="tree-heading"></ul></div>'
        '<div class="card details" id="details" role="region" '
        'aria-label="The selected node" tabindex="-1"></div></div>'
    )


def _charts(figures: Figures, heading: str) -> str:
    placed = {TAXONOMY} | ({THRESHOLD} if TAXONOMY in figures else set())
    cards = "".join(_figure(figures, name) for name in figures if name not in placed)
    return f'<h2>{escape(heading)}</h2><div class="charts">{cards}</div>'


def _figure(figures: Figures, name: str) -> str:
    if name not in figures:
        return ""
    heading, caption = escape(figures[name]["heading"]), escape(figures[name]["caption"])
    return (
        f'<figure class="card"><h3>{heading}</h3><div class="chart" id="chart-{name}" '
        f'data-figure="{name}" role="img" aria-label="{heading}. {caption}"></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _methods_of_study(study: Mapping[str, Any]) -> str:
    chosen = {"method": study["method"], "C": study["C"], "ψ": study["psi"], **study["data"]}
    return (
        f"<h2>Methods, settings, versions</h2>{methods_of_study(study)}"
        f"{significance_of_study(study)}"
        f'<div class="columns">{_list("Chosen and counted", _named(chosen))}'
        f"{_list('Settings', study['settings'])}{_list('Versions', study['versions'])}</div>"
        f"{_commands(study['how'])}"
    )


def _settings_of_results(results: Mapping[str, Any]) -> str:
    protocol = {**results["protocol"], "seconds in all": round(results.get("seconds", 0.0), 1)}
    command = (
        f"taxofit reproduce {results['dataset']} --data DATA --runs {protocol['n_runs']} "
        f"--seed {protocol['seed']} --out FOLDER"
    )
    return (
        "<h2>Settings and versions</h2>"
        f'<div class="columns">{_list("Data", _named(results["data"]))}'
        f"{_list('Protocol', _named(protocol))}"
        f"{_list('Versions', {**results['versions'], **results.get('machine', {})})}</div>"
        f"{_commands({'The whole run': command})}"
    )


def _list(heading: str, values: Mapping[str, object]) -> str:
    return f'<div class="card"><h3>{heading}</h3><dl>{facts(values)}</dl></div>'


def _named(values: Mapping[str, object]) -> dict[str, object]:
    """Return values under names for people: n_rows is 'rows'."""
    return {name.removeprefix("n_").replace("_", " "): value for name, value in values.items()}


def _commands(how: Mapping[str, str]) -> str:
    if not how:
        return ""
    lines = "".join(
        f"<p>{escape(title)}</p><pre tabindex='0'><code>{escape(command)}</code></pre>"
        for title, command in how.items()
    )
    return f'<div class="card"><h3>How to reproduce</h3>{lines}</div>'


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
