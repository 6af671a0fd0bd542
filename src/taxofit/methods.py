"""The names under which the paper's methods go, on the command line and in results."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

__all__ = ["FLATTENINGS", "flattening_named"]

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
        raise ValueError(
            f"unknown flattening {flattening!r}; choose from {', '.join(FLATTENINGS)}"
        )
    return FLATTENINGS[flattening]
