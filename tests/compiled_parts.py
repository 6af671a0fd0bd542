"""Parts of compiled loops, which only compiled code can call."""

import numba


def called(part, *arguments):
    """Call a part of the loops."""

    @numba.njit
    def call(*arguments):
        return part(*arguments)

    return call(*arguments)
