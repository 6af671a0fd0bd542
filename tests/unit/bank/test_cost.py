from dataclasses import replace

import pytest

from taxofit.bank import cost, lane_sample, lanes
from taxofit.bank.cost import CHUNKS, FitSize, estimate_fit, network_bytes, passes_at

SIZE = FitSize(n_rows=20_000, n_entries=1_500_000, n_features=60_000, n_nodes=3000, Cs=(0.1, 1.0))


def test_time_grows_in_proportion_to_the_nodes():
    once, twice = estimate_fit(SIZE), estimate_fit(replace(SIZE, n_nodes=6000))
    assert twice.cpu_seconds == pytest.approx(2 * once.cpu_seconds, rel=0.02)


def test_threads_share_the_work_as_far_as_there_are_blocks():
    one, two, many = (estimate_fit(replace(SIZE, n_threads=n)) for n in (1, 2, 1000))
    assert one.cpu_seconds == two.cpu_seconds == many.cpu_seconds == pytest.approx(one.seconds)
    solving = 2 * (one.seconds - two.seconds)  # preparing the rows is the work of one thread
    assert one.seconds - many.seconds == pytest.approx(23 / 24 * solving)  # 3000 are 24 blocks
    assert one.seconds > solving


def test_mapped_rows_take_disk_instead_of_memory():
    in_memory, mapped = estimate_fit(SIZE), estimate_fit(replace(SIZE, is_mapped=True))
    moved = in_memory.memory_bytes + CHUNKS - mapped.memory_bytes
    assert moved >= 8 * 2 * SIZE.n_entries
    assert mapped.disk_bytes - in_memory.disk_bytes == pytest.approx(moved)


def test_scores_of_the_validation_rows_are_counted_for_every_c():
    none = estimate_fit(replace(SIZE, Cs=()))
    some, more = estimate_fit(SIZE), estimate_fit(replace(SIZE, Cs=(0.1, 1.0, 10.0)))
    scores = 4 * 0.1 * SIZE.n_rows * SIZE.n_nodes
    assert some.memory_bytes - none.memory_bytes >= 2 * scores
    assert more.memory_bytes - some.memory_bytes >= scores


def test_passes_grow_with_c_and_are_defined_for_any():
    known = [passes_at(C) for C in (1e-6, 1e-3, 0.05, 1, 7, 1e3, 1e6)]
    assert known == sorted(known)
    assert known[0] == known[1]


def test_scores_beyond_their_share_of_memory_go_to_files():
    kept, spilled = estimate_fit(SIZE), estimate_fit(replace(SIZE, available_bytes=1e6))
    scores = 4 * 0.1 * SIZE.n_rows * SIZE.n_nodes * 2
    assert kept.memory_bytes - spilled.memory_bytes == pytest.approx(scores)
    assert spilled.disk_bytes - kept.disk_bytes == pytest.approx(scores)


def test_weights_for_the_refit_are_kept_where_there_are_no_samples():
    size = FitSize(n_rows=1000, n_entries=158_000, n_features=5000, n_nodes=100, Cs=(1.0, 10.0))
    without, with_samples = (
        network_bytes(replace(size, n_entries=n), 2) for n in (158_000, 159_000)
    )
    n_weights = cost.WARM_WEIGHTS * 5000**cost.KEPT_GROWTH
    assert without[1] - with_samples[1] == pytest.approx(8 * 2 * 100 * n_weights)


def test_the_solver_is_as_the_model_takes_it_to_be():
    assert (cost.LEAST_BLOCK, cost.BLOCK) == (lanes.LEAST_BLOCK_SIZE, lanes.BLOCK_SIZE)
    assert cost.LEAST_WORK == lane_sample.LEAST_WORK
    assert cost.WORK_OF_A_ROW == lane_sample.WORK_OF_A_ROW
