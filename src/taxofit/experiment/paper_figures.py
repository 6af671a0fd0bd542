"""The figures that the paper prints, as data: percentages (tree errors: edges) as printed.

Naik and Rangwala, *Inconsistent Node Flattening for Improving Top-down Hierarchical
Classification*. Nothing here was measured by us. Pairs are (mean, standard deviation) of five runs.
Figures that the paper only draws (threshold curve, fan-out, p-values, prediction time) cannot be
listed.
"""

from __future__ import annotations

__all__ = [
    "BY_CLASS_SIZE",
    "DATASETS",
    "FLAT_SCORES",
    "HIERARCHICAL",
    "LEVEL_ERRORS",
    "PAPER_NAMES",
    "TRAINING_MINUTES",
]

PAPER_NAMES = {"clef": "CLEF", "diatoms": "DIATOMS", "dmoz-small": "DMOZ-SMALL"}
"""Our data sets that are the paper's. IPC-D is a twentieth of its IPC and is not compared."""

TOP_DOWN = ("td-lr", "tlf", "blf", "mlf", "mta", "level-inf", "global-inf")
Scores = dict[str, tuple[float, float]]


def _row(*printed: tuple[float, float] | None) -> Scores:
    return {
        method: pair for method, pair in zip(TOP_DOWN, printed, strict=True) if pair is not None
    }


DATASETS: dict[str, tuple[int, ...]] = {
    "clef": (88, 63, 4, 10_000, 1_006, 80),
    "diatoms": (399, 311, 4, 1_940, 993, 371),
    "dmoz-small": (2_388, 1_139, 6, 6_323, 1_858, 51_033),
}
"""Table 'Dataset statistics': nodes, leaves, depth, training rows, test rows, features."""

FLAT_SCORES: dict[str, dict[str, Scores]] = {
    "clef": {
        "micro_f1": _row(
            (72.74, 0.43), (75.84, 0.32), (73.76, 0.32), None,
            (74.48, 0.42), (75.25, 0.55), (77.14, 0.01),
        ),
        "macro_f1": _row(
            (35.92, 0.01), (38.45, 0.65), (40.93, 0.19), None,
            (39.53, 0.74), (39.89, 0.24), (46.54, 0.01),
        ),
    },
    "diatoms": {
        "micro_f1": _row(
            (53.27, 0.32), (56.93, 0.28), (53.27, 0.24), None,
            (58.36, 0.64), (58.32, 0.64), (61.31, 0.53),
        ),
        "macro_f1": _row(
            (44.46, 0.24), (45.17, 0.62), (44.30, 0.64), None,
            (45.21, 0.65), (48.77, 0.12), (51.85, 0.23),
        ),
    },
    "dmoz-small": {
        "micro_f1": _row(
            (45.10, 0.23), (45.48, 0.19), (44.34, 0.32), (45.80, 0.64),
            (46.01, 0.74), (45.43, 0.21), (46.61, 0.28),
        ),
        "macro_f1": _row(
            (30.65, 0.43), (30.60, 0.54), (30.94, 0.53), (30.62, 0.32),
            (30.82, 0.63), (30.34, 0.12), (31.86, 0.64),
        ),
    },
}  # fmt: skip
"""Table 'µF1 and MF1 performance comparison of various TD hierarchical baselines'."""

HIERARCHICAL: dict[str, dict[str, Scores]] = {
    "clef": {
        "hierarchical_f1": _row(
            (74.52, 0.01), (78.24, 0.75), (75.13, 0.46), None,
            (76.01, 0.74), (76.81, 0.59), (79.06, 0.01),
        ),
        "hierarchical_f1_modified": _row(
            None, (77.78, 0.65), (78.08, 0.13), None, (77.50, 0.23), (78.28, 0.24), (80.87, 0.13)
        ),
        "tree_error": _row(
            (1.26, 0.01), (1.08, 0.08), (1.23, 0.03), None, (1.13, 0.09), (1.15, 0.05), (1.04, 0.03)
        ),
        "tree_error_modified": _row(
            None, (0.89, 0.07), (0.88, 0.04), None, (0.90, 0.04), (0.94, 0.01), (0.71, 0.09)
        ),
    },
    "diatoms": {
        "hierarchical_f1": _row(
            (56.15, 0.21), (62.53, 0.43), (56.14, 0.17), None,
            (59.60, 0.28), (60.03, 0.24), (62.80, 0.04),
        ),
        "hierarchical_f1_modified": _row(
            None, (63.38, 0.24), (57.02, 0.62), None, (59.70, 0.14), (59.98, 0.28), (63.88, 0.13)
        ),
        "tree_error": _row(
            (1.76, 0.01), (1.49, 0.01), (1.76, 0.03), None, (1.60, 0.03), (1.60, 0.06), (1.49, 0.02)
        ),
        "tree_error_modified": _row(
            None, (1.28, 0.02), (1.32, 0.02), None, (1.14, 0.06), (1.16, 0.02), (1.08, 0.08)
        ),
    },
    "dmoz-small": {
        "hierarchical_f1": _row(
            (63.14, 0.54), (63.17, 0.43), (63.26, 0.52), (63.32, 0.64),
            (63.20, 0.54), (61.98, 0.56), (63.37, 0.44),
        ),
        "hierarchical_f1_modified": _row(
            None, (64.32, 0.50), (63.94, 0.38), (63.39, 0.19),
            (63.82, 0.42), (58.02, 0.14), (64.97, 0.75),
        ),
        "tree_error": _row(
            (3.55, 0.04), (3.55, 0.02), (3.53, 0.03), (3.53, 0.06),
            (3.51, 0.08), (3.65, 0.06), (3.50, 0.02),
        ),
        "tree_error_modified": _row(
            None, (2.96, 0.05), (2.90, 0.01), (2.62, 0.03),
            (2.68, 0.03), (2.82, 0.02), (2.37, 0.03),
        ),
    },
}  # fmt: skip
"""Table 'Hierarchical performance comparison … over original and modified hierarchy'."""

LEVEL_ERRORS: dict[str, dict[str, tuple[tuple[float, float, int], ...]]] = {
    "clef": {
        "td-lr": ((21.27, 0.63, 214), (7.71, 0.42, 240), (11.30, 0.16, 274)),
        "global-inf": ((20.18, 0.26, 203), (7.34, 0.29, 224), (5.66, 0.13, 227)),
    },
    "dmoz-small": {
        "td-lr": (
            (42.47, 0.32, 789),
            (14.45, 0.62, 921),
            (15.14, 0.34, 972),
            (12.32, 0.02, 1001),
            (15.66, 0.05, 1020),
        ),
        "global-inf": (
            (39.83, 0.17, 740),
            (12.91, 0.21, 855),
            (17.99, 0.14, 968),
            (7.57, 0.10, 991),
            (33.33, 0.04, 992),
        ),
    },
}
"""Table 'Level-wise error for TD-LR and Global-INF': error, its standard deviation, #ME."""

BY_CLASS_SIZE: dict[str, dict[str, dict[str, tuple[float, float]]]] = {
    "clef": {
        "6-10": {"global-inf": (36.12, 66.45), "lr": (35.14, 62.34), "ecoc": (36.16, 63.45)},
        "11-50": {"global-inf": (45.52, 76.13), "lr": (45.92, 77.04), "ecoc": (45.36, 76.40)},
        ">50": {"global-inf": (52.24, 84.12), "lr": (55.92, 87.24), "ecoc": (53.24, 85.90)},
        "all": {"global-inf": (46.99, 79.00), "lr": (51.31, 80.58), "ecoc": (50.02, 79.34)},
    },
    "diatoms": {
        "6-10": {"global-inf": (41.08, 48.92), "lr": (38.92, 46.32), "ecoc": (39.14, 47.44)},
        "11-50": {"global-inf": (42.82, 62.72), "lr": (44.18, 62.45), "ecoc": (43.82, 59.26)},
        ">50": {"global-inf": (53.17, 64.10), "lr": (57.24, 68.10), "ecoc": (52.21, 63.28)},
        "all": {"global-inf": (51.85, 62.80), "lr": (54.17, 63.50), "ecoc": (48.82, 61.92)},
    },
    "dmoz-small": {
        "<=5": {"global-inf": (28.77, 51.86), "lr": (27.02, 46.81), "ecoc": (27.12, 47.35)},
        "6-10": {"global-inf": (55.55, 67.47), "lr": (54.76, 65.40), "ecoc": (54.18, 63.28)},
        "11-50": {"global-inf": (72.26, 78.74), "lr": (72.60, 80.12), "ecoc": (72.02, 78.53)},
        ">50": {"global-inf": (69.43, 86.70), "lr": (71.44, 88.95), "ecoc": (69.80, 85.89)},
        "all": {"global-inf": (31.86, 63.37), "lr": (30.80, 60.87), "ecoc": (30.10, 60.50)},
    },
}
"""Table 'MF1 and hF1 … with varying distribution of training examples per class': MF1, hF1."""

TRAINING_MINUTES: dict[str, dict[str, float]] = {
    "clef": {"global-inf": 3, "lr": 1},
    "diatoms": {"global-inf": 10, "lr": 3},
    "dmoz-small": {"global-inf": 68, "lr": 46},
}
"""Table 'Total training runtime comparison (in mins)': summed over the nodes of a cluster."""
