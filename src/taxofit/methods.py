"""The names under which the paper's methods go, on the command line, in results and in models."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from taxofit.flattening import (
    FlattenAll,
    FlattenLevels,
    GlobalINF,
    KeepAll,
    LevelINF,
    MaxMargin,
)

if TYPE_CHECKING:
    from taxofit.flattening import Flattening

__all__ = [
    "FLATTENINGS",
    "TITLES",
    "flattening_from_json",
    "flattening_named",
    "flattening_to_json",
]

FLATTENINGS: dict[str, Flattening] = {
    "td-lr": KeepAll(),
    "tlf": FlattenLevels("top"),
    "blf": FlattenLevels("bottom"),
    "mlf": FlattenLevels("multiple"),
    "mta": MaxMargin(),
    "level-inf": LevelINF(),
    "global-inf": GlobalINF(),
    "lr": FlattenAll(),
}
TITLES = {
    "td-lr": "TD-LR",
    "tlf": "TLF",
    "blf": "BLF",
    "mlf": "MLF",
    "mta": "MTA",
    "level-inf": "Level-INF",
    "global-inf": "Global-INF",
    "lr": "LR",
    "ecoc": "ECOC",
}
"""What people call the methods, in the paper's order; ``ecoc`` is an estimator of its own."""
_STRATEGIES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (KeepAll, FlattenAll, FlattenLevels, MaxMargin, LevelINF, GlobalINF)
}


def flattening_named(flattening: Flattening | str) -> Flattening:
    """Return the strategy of this name, or the strategy itself.

    Examples
    --------
    >>> flattening_named("td-lr")
    KeepAll()
    """
    if not isinstance(flattening, str):
        if not hasattr(flattening, "choose"):
            raise TypeError(
                f"flattening must be a strategy such as GlobalINF() or one of "
                f"{', '.join(FLATTENINGS)}, got {flattening!r}"
            )
        return flattening
    if flattening not in FLATTENINGS:
        raise ValueError(f"unknown flattening {flattening!r}; choose from {', '.join(FLATTENINGS)}")
    return FLATTENINGS[flattening]


def flattening_to_json(flattening: Flattening | str) -> str | dict[str, Any]:
    """Return a name, or the class and parameters of a strategy of ours, for JSON.

    Examples
    --------
    >>> flattening_to_json(GlobalINF(psi=0.5))
    {'strategy': 'GlobalINF', 'psi': 0.5}
    """
    if isinstance(flattening, str):
        return flattening
    name = type(flattening).__name__
    if name not in _STRATEGIES:
        raise TypeError(f"{name} is not one of taxofit's strategies")
    return {"strategy": name, **asdict(flattening)}  # type: ignore[call-overload]


def flattening_from_json(saved: str | dict[str, Any]) -> Flattening | str:
    """Return what :func:`flattening_to_json` was given."""
    if isinstance(saved, str):
        return saved
    parameters = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in saved.items()
        if key != "strategy"
    }
    return _STRATEGIES[saved["strategy"]](**parameters)
