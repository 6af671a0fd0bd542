"""What a fit over sparse rows on a CPU will cost, before it begins: time, memory and disk.

Of a bank of n nodes over N rows with E entries and D features, at one C, with p_C passes over the
rows for each node:

    CPU seconds = n · (p_C · (a · E · (1 + ln(1 + D / 10⁴)) + b · N + d · E / N) + c · D)

The logarithm stands for the caches that more features no longer fit in, E / N for a sample of rows,
whose number does not grow; the last term is reading off and judging a node's weights. Before that
the rows are copied, put in order and turned to columns: e · E, once over the rows that train and
once over all. ``benchmarks/cost_model.py`` fits p, a, b, c and d to what was measured, and
docs/scaling.md says how well. Bytes are those of the arrays that the code makes at the peak; how
many weights pruning leaves was measured too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taxofit.bank.block_work import block_size_for
from taxofit.bank.evidence import SPILLED_SHARE
from taxofit.bank.solver import JUDGED_CELLS

__all__ = [
    "CHUNKS",
    "FitCost",
    "FitSize",
    "bank_seconds",
    "estimate_fit",
    "network_bytes",
    "passes_at",
    "work_of",
]

# From `benchmarks/cost_model.py`, on one core of an AMD EPYC (Zen 5).
PASSES = {0.001: 3.0, 0.01: 3.0, 0.1: 3.1, 1.0: 3.7, 10.0: 5.5, 100.0: 6.1, 1000.0: 6.9}
SECONDS = (5.5e-11, 2.9e-9, 1.5e-9, 1.8e-7)  # a, b, c, d
REFERENCE = 1e4  # features
# e: 3e-8 to 8e-8 were measured for 0.2 to 10 million entries in memory, 1e-7 for 63 million in
# files.
PREPARING, PREPARING_MAPPED = 6e-8, 1e-7

# Of the lanes' solver: fewest and most problems of a block, lanes, bytes of a float32 line.
LEAST_BLOCK, BLOCK, LANES, LINE = 64, 128, 16, 64
VALIDATION_SHARE = 0.1
ENTRY = 8  # bytes of a value and its column
# Of the columns once more in 16 bits, where rows and columns are no more than these.
SHORT_PLACE, SHORT_PLACES = 2, 1 << 16
CHUNKS = 64 << 20  # bytes of the parts of a store that are worked on at a time, all copies together
# Bytes of what is known at each C, the all-negative solution included.
ROW_AT_C, FEATURE_AT_C = 8 * 4, 5 * 4
# Of a pass over the rows: with more, problems start from samples, and the refit does.
LEAST_WORK, WORK_OF_A_ROW = 175_000, 16
# Weights that a first pruning leaves a node, times D^0.41: to start the refit from, and to pack.
WARM_WEIGHTS, KEPT_GROWTH = 25, 0.41
MODEL_WEIGHTS = {0.001: 8.0, 0.1: 16.0, 1.0: 35.0, 10.0: 90.0, 100.0: 115.0, 1000.0: 130.0}
PACKED_WEIGHT, PACKING_WEIGHT = 4, 30  # bytes of one of them in a model, and while it is packed


@dataclass(frozen=True, kw_only=True)
class FitSize:
    """What a fit is asked to do.

    Attributes
    ----------
    n_rows, n_entries, n_features, n_nodes : int
        Entries are those of the encoded rows, without the constant feature.
    Cs : tuple of float
        Tried on validation rows; empty where none are held out.
    C : float
        Of the last solve over all rows.
    n_threads : int
    is_mapped : bool
        Whether the rows are in a store.
    available_bytes : float
        Scores of the validation rows that take a larger share of it go to files.
    """

    n_rows: int
    n_entries: int
    n_features: int
    n_nodes: int
    Cs: tuple[float, ...] = ()
    C: float = 1.0
    n_threads: int = 1
    is_mapped: bool = False
    available_bytes: float = math.inf


@dataclass(frozen=True, kw_only=True)
class FitCost:
    """What it takes.

    Attributes
    ----------
    cpu_seconds : float
    seconds : float
        With the work on all threads.
    memory_bytes : float
        On top of what the process and the rows themselves have; pages of files do not count.
    disk_bytes : float
        For the model, and for scratch files beside a store.
    """

    cpu_seconds: float
    seconds: float
    memory_bytes: float
    disk_bytes: float

    def to_json(self) -> dict[str, float]:
        """Return whole numbers, for JSON."""
        return {
            "cpu_seconds": round(self.cpu_seconds, 1),
            "seconds": round(self.seconds, 1),
            "memory_bytes": round(self.memory_bytes),
            "disk_bytes": round(self.disk_bytes),
        }


def passes_at(C: float) -> float:
    """Return how often the solver goes over the rows for a node.

    Examples
    --------
    >>> passes_at(1.0)
    3.7
    """
    return _at(C, PASSES)


def work_of(n_rows: int, n_entries: int, n_features: int, passes: float) -> tuple[float, ...]:
    """Return what a, b, c and d are multiplied with, for one node.

    Examples
    --------
    >>> work_of(10, 100, 0, 2.0)
    (200.0, 20.0, 0, 20.0)
    """
    misses, length = 1 + math.log1p(n_features / REFERENCE), n_entries / max(n_rows, 1)
    return passes * n_entries * misses, passes * n_rows, n_features, passes * length


def bank_seconds(size: FitSize, C: float) -> float:
    """Return the CPU time of all nodes over all rows at one C.

    The all-negative problem that nodes start from has its passes to itself: it costs as much as
    sixteen nodes.
    """
    work = work_of(size.n_rows, size.n_entries, size.n_features, passes_at(C))
    return (size.n_nodes + LANES) * float(np.dot(work, SECONDS))


def estimate_fit(size: FitSize) -> FitCost:
    """Return what a fit of this size will take.

    Examples
    --------
    >>> size = FitSize(n_rows=128_710, n_entries=10_700_000, n_features=381_580, n_nodes=17_222)
    >>> cost = estimate_fit(size)
    >>> 200 < cost.cpu_seconds < 500, 1e8 < cost.disk_bytes < 1e9
    (True, True)
    """
    cpu_seconds = bank_seconds(size, size.C)
    cpu_seconds += (1 - VALIDATION_SHARE) * sum(bank_seconds(size, C) for C in size.Cs)
    preparing = _preparing_seconds(size)
    n_busy = min(size.n_threads, math.ceil(size.n_nodes / _block_size(size)))
    n_weights = size.n_nodes * _model_weights(size)
    solving = n_busy * _block_bytes(size) + ENTRY * n_weights
    memory = _bank_bytes(size) + max(solving, PACKING_WEIGHT * n_weights)
    disk = PACKED_WEIGHT * n_weights
    rows_bytes, score_bytes = _copies_of_rows(size), _score_bytes(size)
    if size.is_mapped:
        disk += rows_bytes
        memory += CHUNKS
    else:
        memory += rows_bytes
    if score_bytes > SPILLED_SHARE * size.available_bytes:
        disk += score_bytes
    else:
        memory += score_bytes
    return FitCost(
        cpu_seconds=preparing + cpu_seconds,
        seconds=preparing + cpu_seconds / n_busy,
        memory_bytes=memory,
        disk_bytes=disk,
    )


def network_bytes(size: FitSize, n_workers: int) -> tuple[float, float]:
    """Return bytes out to the workers of a cluster, and bytes back from them.

    Rows go once to each worker for the nodes that are validated and once for those that are kept;
    scores of the validation rows and pruned weights come back.

    Examples
    --------
    >>> size = FitSize(n_rows=1000, n_entries=100_000, n_features=5000, n_nodes=100)
    >>> out, back = network_bytes(size, 2)
    >>> out, round(back, -3)
    (1632000.0, 920000.0)
    """
    rows_bytes = ENTRY * (size.n_entries + 2 * size.n_rows)
    back = ENTRY * size.n_nodes * _model_weights(size) + _score_bytes(size)
    back += _start_bytes(size)
    return float(n_workers * rows_bytes * (2 if size.Cs else 1)), float(back)


def _preparing_seconds(size: FitSize) -> float:
    """Return the time before the first pass, on one thread."""
    each = PREPARING_MAPPED if size.is_mapped else PREPARING
    return each * size.n_entries * (2 - VALIDATION_SHARE if size.Cs else 1)


def _copies_of_rows(size: FitSize) -> float:
    """Bytes of the rows with the constant, and of the shared features by row and by column."""
    is_short = max(size.n_rows, size.n_features) <= SHORT_PLACES
    entry = 3 * ENTRY + (2 * SHORT_PLACE if is_short else 0)
    once = entry * size.n_entries + ENTRY * size.n_rows
    return once * (2 if size.Cs else 1)


def _bank_bytes(size: FitSize) -> float:
    """Bytes that last as long as the fit: starts at each C and for the refit, weights for it."""
    at_C = ROW_AT_C * size.n_rows + FEATURE_AT_C * size.n_features
    return (1 + len(size.Cs)) * at_C + 40 * size.n_rows + _start_bytes(size)


def _start_bytes(size: FitSize) -> float:
    """Bytes of the weights at each C that the refit may start from, where there are no samples."""
    if WORK_OF_A_ROW * size.n_rows + size.n_entries >= LEAST_WORK:
        return 0.0
    return ENTRY * len(size.Cs) * size.n_nodes * _kept(size, WARM_WEIGHTS)


def _block_size(size: FitSize) -> int:
    return block_size_for(size.n_nodes, LEAST_BLOCK, BLOCK)


def _block_bytes(size: FitSize) -> float:
    """Bytes of a block while it is solved, judged and pruned, if all weights stay.

    Pruned weights and their places are there twice: of every thread, and joined.
    """
    width = min(_block_size(size), size.n_nodes)
    taken = 4 * 4  # weights of four lanes, brought together
    lanes = (2 * LINE + 2 + taken) * size.n_rows + (5 * LINE + taken) * size.n_features
    pruning = width * (4 + 2 * (4 + 4)) * size.n_features
    n_scores = width * VALIDATION_SHARE * size.n_rows if size.Cs else 0.0
    return lanes + max(pruning, 2 * 4 * n_scores + 3 * 8 * min(n_scores, JUDGED_CELLS))


def _at(C: float, known: dict[float, float]) -> float:
    return float(np.interp(math.log10(C), np.log10(list(known)), list(known.values())))


def _model_weights(size: FitSize) -> float:
    """Weights of a node that are packed, at the largest C that may be chosen."""
    return _kept(size, _at(max((size.C, *size.Cs)), MODEL_WEIGHTS))


def _kept(size: FitSize, weights: float) -> float:
    return min(size.n_features, weights * size.n_features**KEPT_GROWTH)


def _score_bytes(size: FitSize) -> float:
    return 4 * VALIDATION_SHARE * size.n_rows * size.n_nodes * len(size.Cs)
