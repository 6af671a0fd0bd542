"""A bank with a work folder: what is found is not solved again, and nothing else is believed."""

from dataclasses import replace
from threading import Timer

import numpy as np
import pytest
from scipy import sparse

from taxofit.bank.block_work import SolvedBlock, chains_of, pack_blocks, unpack_blocks
from taxofit.bank.harvest import Harvest, pick_weights
from taxofit.bank.lane_block import LaneBlock
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows, node_targets
from taxofit.bank.solver import SolverSettings
from taxofit.bank.stopping import StopFlag, Stopped
from taxofit.bank.warm_starts import WarmStarts
from taxofit.bank.work_dir import SHARDS, WorkDir
from taxofit.datasets import make_taxonomy_classification

CS = [0.1, 1.0, 10.0]


@pytest.fixture(scope="module", params=["sparse", "dense"])
def made(request):
    problem = make_taxonomy_classification(
        300, depth=2, fan_out=4, n_features=60, n_inconsistent=0, random_state=5
    )
    return problem if request.param == "sparse" else replace(problem, X=problem.X.toarray())


class Solving:
    """A bank in small blocks that counts what it solves."""

    def __init__(self, made, work_dir, monkeypatch, **settings):
        row_leaf = made.taxonomy.nodes_of(made.y)
        self.bank = NodeBank(
            Rows.prepare(made.X), made.taxonomy, row_leaf, work_dir=work_dir, **settings
        )
        self.bank._solver.block_size = 5
        self.n_solved, self.fails_after = 0, np.inf
        self.weights = {}
        solve = self.bank._solver.solve

        def counted(*args):
            self.n_solved += 1
            if self.n_solved > self.fails_after:
                raise MemoryError
            return solve(*args)

        monkeypatch.setattr(self.bank._solver, "solve", counted)

    def run(self, Cs=CS, **options):
        def keep(nodes, C, arrays):
            for k, node in enumerate(nodes):
                self.weights[int(node), C] = arrays["weights"][:, k]

        return self.bank.solve(Cs, Harvest(pick_weights, keep), **options)


def assert_same_weights(one, other):
    assert one.weights.keys() == other.weights.keys()
    for key, weights in one.weights.items():
        assert weights.tobytes() == other.weights[key].tobytes()


@pytest.fixture
def solving(made, tmp_path, monkeypatch):
    return lambda work_dir=None, **settings: Solving(
        made, None if work_dir is None else WorkDir(tmp_path / work_dir), monkeypatch, **settings
    )


def test_a_second_run_solves_nothing_and_receives_the_same(solving):
    plain, first, second = solving(), solving("work"), solving("work")
    reports = [each.run() for each in (plain, first, second)]
    assert plain.n_solved == first.n_solved > 0
    assert second.n_solved == 0
    assert_same_weights(plain, first)
    assert_same_weights(plain, second)
    assert reports[0] == reports[1] == reports[2]


def test_a_run_that_failed_goes_on_where_it_was(solving):
    plain = solving()
    plain.run()
    failing = solving("work", n_threads=1)
    failing.fails_after = plain.n_solved // 2
    with pytest.raises(MemoryError):
        failing.run()
    resumed = solving("work")
    resumed.run()
    assert 0 < resumed.n_solved < plain.n_solved
    assert_same_weights(plain, resumed)


def test_a_damaged_shard_is_solved_again(solving, tmp_path):
    first, second, third = solving("work"), solving("work"), solving("work")
    first.run()
    shard = min((tmp_path / "work" / SHARDS).iterdir())
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="is damaged"):
        second.run()
    assert 0 < second.n_solved < first.n_solved
    assert_same_weights(first, second)
    third.run()
    assert third.n_solved == 0


def changed_rows(rows, what):
    X, weight = rows.X.copy(), rows.weight.copy()
    if what == "value":
        (X.data if sparse.issparse(X) else X.reshape(-1))[0] += 1
    else:
        weight[0] = 2.0
    return Rows(X, weight, rows.has_constant)


@pytest.mark.parametrize("what", ["tol", "max_iter", "weight", "value", "leaf"])
def test_other_content_is_solved_and_old_shards_are_left_alone(solving, tmp_path, what):
    first, other = solving("work"), solving("work")
    first.run()
    before = set((tmp_path / "work" / SHARDS).iterdir())
    bank = other.bank
    if what in {"tol", "max_iter"}:
        bank.settings = SolverSettings(**{what: {"tol": 1e-3, "max_iter": 99}[what]})
    elif what == "leaf":
        bank.row_leaf = np.roll(bank.row_leaf, 1)
    else:
        bank.rows = changed_rows(bank.rows, what)
    other.run()
    assert other.n_solved == first.n_solved
    assert before < set((tmp_path / "work" / SHARDS).iterdir())


def test_another_value_of_c_leaves_the_chains_it_is_not_in(solving):
    first, other = solving("work"), solving("work")
    first.run([0.1, 1.0, 10.0])
    other.run([0.2, 1.0, 10.0])
    n_blocks = first.n_solved // 3
    # Sparse rows go on from the C before at 10 only; dense ones at every C.
    assert other.n_solved == (n_blocks if other.bank.rows.is_sparse else 3 * n_blocks)


def test_a_refit_from_other_starts_is_another_task(solving):
    warm = {}
    for share in (0.0, 0.5):
        starts = WarmStarts(solving().bank)
        first = solving()
        first.bank.solve([1.0], starts.harvest)
        columns = starts.take(1.0)
        warm[share] = lambda nodes, columns=columns, share=share: columns(nodes) * (1 - share)
    one, again, other = solving("work"), solving("work"), solving("work")
    one.run([1.0], start=warm[0.0])
    again.run([1.0], start=warm[0.0])
    other.run([1.0], start=warm[0.5])
    assert again.n_solved == 0
    assert other.n_solved == one.n_solved > 0
    assert_same_weights(one, again)


def test_results_of_a_task_survive_packing():
    rng = np.random.default_rng(0)

    def block(C):
        return SolvedBlock(C, {"1/a.b": rng.normal(size=3)}, np.array([True]), np.array([4]))

    solved = [block(C) for C in (0.1, 1.0)]
    unpacked = unpack_blocks((0.1, 1.0), pack_blocks(solved))
    assert [each.C for each in unpacked] == [0.1, 1.0]
    for one, other in zip(solved, unpacked, strict=True):
        assert one.arrays.keys() == other.arrays.keys()
        np.testing.assert_array_equal(one.arrays["1/a.b"], other.arrays["1/a.b"])


@pytest.mark.parametrize("warm_from", [0.0, 1.0, 10.0, 1e9])
def test_chains_keep_all_values_in_order(warm_from):
    Cs = [100.0, 0.1, 10.0, 1.0]
    chains = chains_of(Cs, warm_from)
    assert [C for chain in chains for C in chain] == sorted(Cs)
    assert all(chain[0] < warm_from or chain[0] == min(Cs) for chain in chains)
    assert all(warm_from <= C for chain in chains for C in chain[1:])


def test_a_set_flag_ends_a_block_before_its_first_pass(made, monkeypatch):
    bank = NodeBank(Rows.prepare(made.X), made.taxonomy, made.taxonomy.nodes_of(made.y))
    targets = node_targets(made.taxonomy, bank.row_leaf, np.arange(1, 9))
    stop = StopFlag()
    stop.set()
    blocks = []
    solve = LaneBlock.solve
    monkeypatch.setattr(
        LaneBlock, "solve", lambda block, stop: blocks.append(block) or solve(block, stop)
    )
    with pytest.raises(Stopped):
        bank._solver.solve(targets, 1.0, None, stop)
    assert len(blocks) == sparse.issparse(made.X)
    assert all((block.lanes["n_passes"] == 0).all() for block in blocks)


def test_a_flag_set_while_a_block_is_solved_ends_it(made):
    """The flag is looked at in compiled code, not only before and after it."""
    bank = NodeBank(Rows.prepare(made.X), made.taxonomy, made.taxonomy.nodes_of(made.y))
    bank._solver.solve(node_targets(made.taxonomy, bank.row_leaf, np.arange(1, 3)), 1.0)
    targets = node_targets(made.taxonomy, bank.row_leaf, np.resize(np.arange(1, 21), 20_000))
    stop = StopFlag()
    timer = Timer(0.05, stop.set)
    timer.start()
    with pytest.raises(Stopped):
        bank._solver.solve(targets, 1000.0, None, stop)
    timer.join()
