"""What happened, in a sentence or two, for people who own a taxonomy."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from taxofit.plotting.style import short

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCORES", "Tile", "run_headline", "study_headline", "study_tiles"]

SIGNIFICANT = 0.05
N_NAMED = 4


class Score(NamedTuple):
    """A score: its sign, what it means in plain words, and which way is better."""

    sign: str
    meaning: str
    is_error: bool = False

    def show(self, value: float) -> str:
        """Return a value as people read it: percentages, but steps as they are."""
        return f"{_rounded(value, 3):f}" if self.is_error else f"{_rounded(100 * value, 2):f} %"

    def show_change(self, change: float) -> str:
        """Return a difference with its sign, in points or steps."""
        rounded = _rounded(change, 3) if self.is_error else _rounded(100 * change, 2)
        return f"{rounded:+f}".replace("-", "−")

    def is_better(self, change: float) -> bool:
        """Return whether a change is for the better."""
        return change < 0 if self.is_error else change > 0


def _rounded(value: float, n_digits: int) -> Decimal:
    """Return a value with so many decimals, the same as the page's scripts show.

    Of 1,600 rows 1,146 are 71.625 %: JavaScript rounds such values up, Python to even digits.
    """
    return Decimal(value).quantize(Decimal(1).scaleb(-n_digits), ROUND_HALF_UP)


SCORES = {
    "micro_f1": Score("µF1", "rows right"),
    "macro_f1": Score("MF1", "mean F1 of the classes"),
    "hierarchical_f1": Score("hF1", "F1 of whole paths"),
    "tree_error": Score("TE", "steps off in the tree", is_error=True),
}


class Tile(NamedTuple):
    """A score of the repaired taxonomy beside those of its rivals."""

    score: Score
    value: float
    original: float
    flat: float

    @property
    def change(self) -> float:
        """The difference that repair makes."""
        return self.value - self.original


def study_tiles(study: Mapping[str, Any]) -> list[Tile]:
    """Return the four scores of a study."""
    lines = {line["method"]: line for line in study["results"]}
    mine, original, flat = (lines[name] for name in (study["method"], "td-lr", "lr"))
    return [Tile(score, mine[n], original[n], flat[n]) for n, score in SCORES.items()]


def study_headline(study: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what was removed, what it brought, and whether that is more than chance.

    Examples
    --------
    >>> scores = {"micro_f1": 0.5, "macro_f1": 0.5, "hierarchical_f1": 0.5, "tree_error": 1.0}
    >>> lines = [{"method": m, "n_removed": 0, **scores} for m in ("lr", "td-lr")]
    >>> study = {"method": "td-lr", "results": lines, "data": {"n_internal": 3}, "against": {}}
    >>> study_headline(study)[0]
    'No category was removed.'
    """
    data = study["data"]
    mine = next(line for line in study["results"] if line["method"] == study["method"])
    n_removed, n_internal = mine["n_removed"], data["n_internal"]
    if not n_removed:
        return "No category was removed.", _nothing_removed(study), ""
    noun = "inner category" if n_internal == 1 else "inner categories"
    verb = "was" if n_removed == 1 else "were"
    removed = f"{n_removed:,} of {n_internal:,} {noun} {verb} removed."
    named = _names(study)
    tile = study_tiles(study)[1]
    moved = "rises" if tile.change > 0 else "falls"
    before, after = tile.score.show(tile.original), tile.score.show(tile.value)
    change = (
        f"{moved} from {before} to {after} ({tile.score.show_change(tile.change)} points)"
        if tile.change
        else f"stays at {after}"
    )
    brought = (
        f"Without {named}, macro-F1 on {data['n_validation']:,} held-out rows {change}. "
        f"{_against_flat(tile)}"
    )
    rival = study["against"].get("td-lr")
    return removed, brought, "" if rival is None else _chance(rival, "the original taxonomy")


def _against_flat(tile: Tile) -> str:
    flat = tile.score.show(tile.flat)
    if tile.flat > tile.value:
        return f"Flat, without any taxonomy, it would be higher still: {flat}."
    return f"Flat, without any taxonomy, it would be {flat}."


def _names(study: Mapping[str, Any]) -> str:
    """Return the removed nodes of most rows, and how many more there are."""
    nodes = study["nodes"]
    order = sorted(nodes["removed"], key=lambda node: -nodes["rows"][node])
    shown = [f"‘{short(nodes['name'][node], 30)}’" for node in order[:N_NAMED]]
    if len(order) > N_NAMED:
        return f"{', '.join(shown)} and {len(order) - N_NAMED:,} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _nothing_removed(study: Mapping[str, Any]) -> str:
    if study["method"].startswith("td-lr"):
        return "The model walks down the taxonomy as it was given."
    if not study["data"]["n_internal"]:
        return "The taxonomy is flat: it has no inner categories."
    return "No threshold did better on the held-out rows than the taxonomy as it was given."


def _chance(rival: Mapping[str, Any], name: str) -> str:
    sign, wilcoxon = rival["sign_p_value"], rival["wilcoxon_p_value"]
    tests = f"sign test over rows p {show_p(sign)}, Wilcoxon over classes p {show_p(wilcoxon)}"
    significant = (sign < SIGNIFICANT) + (wilcoxon < SIGNIFICANT)
    verdict = (
        "Chance alone could explain the difference",
        "One of two tests finds the difference larger than chance would explain",
        "The difference is larger than chance would explain",
    )[significant]
    return f"{verdict}, against {name} ({tests})."


def show_p(p: float) -> str:
    """Return a p-value for people.

    Examples
    --------
    >>> show_p(0.04321), show_p(1e-9)
    ('= 0.043', '< 0.001')
    """
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def run_headline(results: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return how Global-INF did against top-down and flat, over the runs of a reproduction."""
    summary = results["summary"]
    n_runs = len({line["seed"] for line in results["results"]})
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs"
    compared = f"{len(summary)} methods in {runs}"
    if not {"global-inf", "td-lr"} <= summary.keys():
        return f"{compared}.", "", ""
    score = SCORES["macro_f1"]
    mine, original = (summary[name]["macro_f1"]["mean"] for name in ("global-inf", "td-lr"))
    gained = f"Repair changes macro-F1 by {score.show_change(mine - original)} points."
    brought = (
        f"{compared}: Global-INF reaches {score.show(mine)} on the test rows, top-down on the "
        f"taxonomy as it is {score.show(original)}"
    )
    if "lr" in summary:
        brought += f", flat {score.show(summary['lr']['macro_f1']['mean'])}"
    pairs = results["significance"].get("global_inf_against", {}).get("td-lr", [])
    n_significant = sum(pair["wilcoxon_p_value"] < SIGNIFICANT for pair in pairs)
    chance = (
        f"Against top-down on the original taxonomy the Wilcoxon test over classes gives "
        f"p < {SIGNIFICANT} in {n_significant} of {len(pairs)} runs."
        if pairs
        else ""
    )
    return gained, f"{brought}.", chance
