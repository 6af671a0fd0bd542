"""Threads that answer, and the queue before them, where requests that wait become one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Task = Callable[[list[Any]], Sequence[Any]]

__all__ = ["NotBegunError", "NotEndedError", "Workers"]


class NotBegunError(Exception):
    """A request that waited too long for a thread."""


class NotEndedError(Exception):
    """A request whose work took too long."""


@dataclass(eq=False)
class _Job:
    task: Task
    rows: list[Any]
    answer: asyncio.Future[list[Any]]
    is_begun: bool = field(default=False)


class Workers:
    """A few threads that work on rows, and whatever waits for them.

    A call of the classifier costs some 600 µs and a row 10 µs more, so requests that arrive while
    all threads are busy are not answered one by one: when a thread gets free it takes as many of
    them as fit into one batch. Nobody waits for a batch to fill.

    All state belongs to the event loop; threads see a task and its rows, and nothing else.

    Parameters
    ----------
    n_threads : int
    max_rows : int
        Of one batch; a single job may have more.
    timeout_seconds : float
    observe : callable, optional
        Called with the number of rows of every batch.
    """

    def __init__(
        self,
        n_threads: int,
        *,
        max_rows: int,
        timeout_seconds: float,
        observe: Callable[[int], object] | None = None,
    ) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="taxofit")
        self._n_free = n_threads
        self._max_rows = max_rows
        self._timeout_seconds = timeout_seconds
        self._observe = observe
        self._waiting: deque[_Job] = deque()

    async def work(self, task: Task, rows: list[Any]) -> list[Any]:
        """Return ``task(rows)``, one answer for each row.

        Rows of several calls with an equal task may go into one call of it; an error there is
        raised only for the calls whose own rows cause it.
        """
        job = _Job(task, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._begin()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await job.answer
        except TimeoutError:
            raise (NotEndedError if job.is_begun else NotBegunError) from None

    def close(self) -> None:
        """Let the threads end when they are done."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        """Give waiting jobs to free threads."""
        while self._n_free and (jobs := self._take()):
            self._n_free -= 1
            for job in jobs:
                job.is_begun = True
            if self._observe is not None:
                self._observe(sum(len(job.rows) for job in jobs))
            done = asyncio.get_running_loop().run_in_executor(self._pool, _answer, jobs)
            done.add_done_callback(partial(self._end, jobs))

    def _take(self) -> list[_Job]:
        """Return the job that waits longest and others like it that fit into the same batch."""
        taken: list[_Job] = []
        left: deque[_Job] = deque()
        n_rows = 0
        for job in self._waiting:
            if job.answer.done():  # given up
                continue
            is_like = not taken or job.task == taken[0].task
            if is_like and (not taken or n_rows + len(job.rows) <= self._max_rows):
                taken.append(job)
                n_rows += len(job.rows)
            else:
                left.append(job)
        self._waiting = left
        return taken

    def _end(self, jobs: list[_Job], done: asyncio.Future[list[list[Any] | Exception]]) -> None:
        self._n_free += 1
        for job, answer in zip(jobs, done.result(), strict=True):
            if job.answer.done():
                continue
            if isinstance(answer, Exception):
                job.answer.set_exception(answer)
            else:
                job.answer.set_result(answer)
        self._begin()


def _answer(jobs: list[_Job]) -> list[list[Any] | Exception]:
    """Return the answers to each job, or what went wrong; in a thread."""
    rows = [row for job in jobs for row in job.rows]
    try:
        answers = list(jobs[0].task(rows))
    except Exception as error:  # noqa: BLE001  (whoever asked gets it)
        if len(jobs) == 1:
            return [error]
        return [answer for job in jobs for answer in _answer([job])]
    parts, start = [], 0
    for job in jobs:
        parts.append(answers[start : start + len(job.rows)])
        start += len(job.rows)
    return list(parts)
