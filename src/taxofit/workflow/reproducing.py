"""What ``taxofit reproduce`` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.datasets import BENCHMARKS
from taxofit.errors import DataError
from taxofit.experiment import METHODS, Protocol, run_reproduction

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["reproduce"]


def reproduce(
    source: str,
    out: str,
    *,
    data: str | None = None,
    n_runs: int = Protocol.n_runs,
    methods: tuple[str, ...] | None = None,
    seed: int = Protocol.seed,
    draws_figures: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Run the paper's protocol on a benchmark or a folder; see ``run_reproduction``."""
    if source not in BENCHMARKS and not Path(source).is_dir():
        raise DataError(f"{source} is neither a folder nor one of {', '.join(sorted(BENCHMARKS))}")
    try:
        protocol = Protocol(n_runs=n_runs, methods=methods or METHODS, seed=seed)
    except ValueError as error:
        raise DataError(str(error)) from None
    return run_reproduction(
        source,
        out,
        data=data,
        protocol=protocol,
        draws_figures=draws_figures,
        progress=progress,
    )
