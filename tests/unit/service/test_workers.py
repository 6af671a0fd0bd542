"""The queue before the threads: batches, order, errors and time limits."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from taxofit.service.workers import NotBegunError, NotEndedError, Workers


@dataclass(eq=False)
class Doubling:
    """A task that waits to be let go, notes its batches, and fails on the row 13."""

    go: threading.Event = field(default_factory=threading.Event)
    batches: list = field(default_factory=list)

    def __call__(self, rows):
        assert self.go.wait(30)
        self.batches.append(list(rows))
        if 13 in rows:
            raise ValueError("13")
        return [2 * row for row in rows]


def run(scenario, **settings):
    """Run a scenario with workers of its own; let their threads end."""

    async def main():
        workers = Workers(**({"n_threads": 1, "max_rows": 8, "timeout_seconds": 30} | settings))
        try:
            return await scenario(workers)
        finally:
            workers.close()

    return asyncio.run(main())


def test_rows_that_wait_together_are_answered_together_and_each_to_who_asked():
    task = Doubling()

    async def scenario(workers):
        asked = [asyncio.create_task(workers.work(task, [n, n + 100])) for n in range(6)]
        await asyncio.sleep(0)
        task.go.set()
        return await asyncio.gather(*asked)

    assert run(scenario) == [[2 * n, 2 * n + 200] for n in range(6)]
    # The first began alone; the other ten rows waited, and eight fit into a batch.
    assert [len(batch) for batch in task.batches] == [2, 8, 2]


def test_a_batch_is_never_larger_than_allowed_but_a_request_may_be():
    task = Doubling()
    sizes = []

    async def scenario(workers):
        task.go.set()
        return await asyncio.gather(*(workers.work(task, [1] * n) for n in (1, 3, 3, 20)))

    answers = run(scenario, max_rows=4, observe=sizes.append)
    assert [len(answer) for answer in answers] == [1, 3, 3, 20]
    assert sorted(sizes) == [1, 3, 3, 20]
    assert sum(sizes) == 27


def test_tasks_that_differ_are_not_mixed():
    tasks = [Doubling(), Doubling()]

    async def scenario(workers):
        asked = [asyncio.create_task(workers.work(tasks[n % 2], [n])) for n in range(8)]
        await asyncio.sleep(0)
        for task in tasks:
            task.go.set()
        return await asyncio.gather(*asked)

    assert run(scenario) == [[2 * n] for n in range(8)]
    assert sorted(row for batch in tasks[0].batches for row in batch) == [0, 2, 4, 6]
    assert tasks[1].batches == [[1, 3, 5, 7]]


def test_an_error_reaches_only_the_request_that_causes_it():
    task = Doubling()

    async def scenario(workers):
        asked = [asyncio.create_task(workers.work(task, [n])) for n in (1, 2, 13, 3)]
        await asyncio.sleep(0)
        task.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    one, two, unlucky, three = run(scenario)
    assert [one, two, three] == [[2], [4], [6]]
    assert isinstance(unlucky, ValueError)


def test_what_takes_too_long_was_begun_or_not_and_the_thread_goes_on_afterwards():
    task = Doubling()

    async def scenario(workers):
        begun = asyncio.create_task(workers.work(task, [1]))
        waiting = asyncio.create_task(workers.work(task, [2]))
        outcome = await asyncio.gather(begun, waiting, return_exceptions=True)
        task.go.set()
        return outcome, await workers.work(task, [5])

    (begun, waiting), later = run(scenario, timeout_seconds=0.1)
    assert isinstance(begun, NotEndedError)
    assert isinstance(waiting, NotBegunError)
    assert later == [10]
    assert [2] not in task.batches  # nobody waits for it any more


@pytest.mark.parametrize("n_threads", [1, 3])
def test_many_requests_from_many_tasks_all_get_their_own(n_threads):
    task = Doubling()
    task.go.set()

    async def scenario(workers):
        return await asyncio.gather(
            *(workers.work(task, [n] * (1 + n % 5)) for n in range(100, 600))
        )

    answers = run(scenario, n_threads=n_threads)
    assert answers == [[2 * n] * (1 + n % 5) for n in range(100, 600)]
