"""Tasks on workers that are lost, whatever the backend says of it."""

from concurrent.futures import BrokenExecutor, CancelledError

import pytest

from taxofit.bank import distribution

TASKS = dict.fromkeys(range(5))


@pytest.fixture
def dispatching(monkeypatch):
    """Have tasks done as a function of (attempt, those that are left) says."""
    attempts = []

    def use(done):
        def dispatch(_parcel, tasks, _backend):
            attempts.append(list(tasks))
            yield from ((number, f"result {number}") for number in done(len(attempts), list(tasks)))

        monkeypatch.setattr(distribution, "_dispatch", dispatch)
        monkeypatch.setattr(distribution.Parcel, "of", lambda _: None)
        return attempts

    return use


def test_tasks_that_a_backend_leaves_without_a_word_are_done_again(dispatching):
    attempts = dispatching(lambda attempt, left: left if attempt == 3 else left[:1])
    results = dict(distribution.solve_on_workers(None, TASKS, None))
    assert results == {number: f"result {number}" for number in TASKS}
    assert attempts == [[0, 1, 2, 3, 4], [1, 2, 3, 4], [2, 3, 4]]


def test_three_attempts_in_a_row_may_be_in_vain(dispatching):
    attempts = dispatching(lambda attempt, left: left[:1] if attempt == 2 else [])
    with pytest.raises(CancelledError, match="workers are lost"):
        list(distribution.solve_on_workers(None, TASKS, None))
    assert len(attempts) == 2 + distribution.N_ATTEMPTS


def test_the_error_of_the_last_attempt_is_raised(dispatching):
    def lose(_attempt, _left):
        raise BrokenExecutor("a process was killed")

    attempts = dispatching(lose)
    with pytest.raises(BrokenExecutor, match="a process was killed"):
        list(distribution.solve_on_workers(None, TASKS, None))
    assert len(attempts) == distribution.N_ATTEMPTS
