"""Parsing svmlight text at native speed: bytes in, flat arrays out.

A number is read in one pass: up to 18 digits as an integer m and a power of ten e. For m < 2^53
and |e| <= 22 both are exact doubles, so one multiplication or division rounds correctly (Clinger
1990). Longer mantissas are divided in double-double arithmetic. What neither can settle (more
digits, larger powers) is left to Python's ``float`` and listed as *hard*: none of a million random
numbers between 0 and 1 written in full, a quarter of those spread over 40 powers of ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ParsedLines", "parse_lines"]

NEWLINE, SPACE = 10, 32  # all bytes up to the space but the newline count as blanks
HASH, PLUS, COMMA, MINUS, DOT, ZERO, NINE, COLON = 35, 43, 44, 45, 46, 48, 57, 58
LARGE_E, SMALL_E = 69, 101
SMALL_Q, SMALL_I, SMALL_D = 113, 105, 100

MAX_DIGITS = 18  # 10^18 < 2^63
MAX_EXPONENT = 9999  # larger ones are infinite or zero anyway
EXACT_INTEGER = 2**53
EXACT_POWERS = np.array([10.0**k for k in range(23)])  # the powers of ten that are exact doubles
SPLITTER = 2.0**27 + 1  # Veltkamp's, to split a double into two halves of 26 bits
DOUBT = 2.0**-50  # the low part of a quotient is right to 2^-51 of itself

# What can be wrong with a line.
FINE, BAD_FEATURE, BAD_VALUE, LARGE_ID, NO_LABEL, BAD_LABEL, SEVERAL_LABELS = range(7)
READ, HARD, MALFORMED = range(3)  # how reading a number went


class ParsedLines(NamedTuple):
    """The flat arrays of one chunk of lines.

    Row r has the entries up to ``row_stops[r]`` and the labels up to ``label_stops[r]``; the texts
    of the labels are in ``label_text``, a newline after each. A row of ``hard`` is (entry, line,
    line start, start, stop): a number that Python has to read. ``problem`` is (what, line, line
    start, start, stop), all in this chunk.
    """

    ids: NDArray[np.int64]
    numbers: NDArray[np.float64]
    row_stops: NDArray[np.int64]
    row_lines: NDArray[np.int64]
    labels: NDArray[np.int64]
    label_stops: NDArray[np.int64]
    label_text: NDArray[np.uint8]
    has_text_labels: bool
    hard: NDArray[np.int64]
    problem: tuple[int, int, int, int, int]
    n_lines: int


def parse_lines(text: bytes, *, multilabel: bool) -> ParsedLines:
    r"""Return the rows of whole lines of svmlight text as flat arrays.

    Parameters
    ----------
    text : bytes
        The last newline may be missing.
    multilabel : bool
        Whether a line may have several labels, ``12,34``, or none.

    Examples
    --------
    >>> parsed = parse_lines(b"3 7:1 2:0.5\n4 7:2e1 # a remark\n", multilabel=False)
    >>> parsed.ids.tolist(), parsed.numbers.tolist()
    ([7, 2, 7], [1.0, 0.5, 20.0])
    >>> parsed.row_stops.tolist(), parsed.labels.tolist()
    ([2, 3], [3, 4])
    """
    if not text.endswith(b"\n"):
        text += b"\n"  # where every loop over bytes stops
    return ParsedLines(*_parse(np.frombuffer(text, dtype=np.uint8), multilabel))


@njit(cache=True, nogil=True)
def _parse(  # noqa: C901, PLR0912, PLR0915  (a state machine over bytes, in one piece for numba)
    text: NDArray[np.uint8],
    multilabel: bool,  # noqa: FBT001  (numba passes by position)
) -> Any:
    n_colons, n_commas, n_newlines = 0, 0, 0
    for byte in text:
        n_colons += byte == COLON
        n_commas += byte == COMMA
        n_newlines += byte == NEWLINE
    ids = np.empty(n_colons, np.int64)
    values = np.empty(n_colons, np.float64)
    row_stops = np.empty(n_newlines, np.int64)
    row_lines = np.empty(n_newlines, np.int64)
    labels = np.empty(n_newlines + n_commas, np.int64)
    label_stops = np.empty(n_newlines, np.int64)
    label_text = np.empty(text.size + n_newlines, np.uint8)
    hard = np.empty((n_colons, 5), np.int64)
    n_entries, n_rows, n_labels, n_hard, n_label_bytes = 0, 0, 0, 0, 0
    has_text_labels = False
    problem = FINE
    line, line_start, start, i = 0, 0, 0, 0
    while i < text.size and problem == FINE:
        line += 1
        line_start = i
        i = _skip_blanks(text, i)
        if text[i] == NEWLINE or text[i] == HASH:
            i = _next_line(text, i)
            continue

        first = i
        while True:
            start = i
            while text[i] > SPACE and text[i] != COMMA and text[i] != COLON and text[i] != HASH:
                i += 1
            if text[i] == COLON and start == first and multilabel:
                i = first  # a row without labels
                break
            if text[i] == COLON or i == start:
                problem = NO_LABEL if start == first else BAD_LABEL
                break
            value, is_integer = _read_label(text, start, i)
            has_text_labels |= not is_integer
            labels[n_labels] = value
            n_labels += 1
            for position in range(start, i):
                label_text[n_label_bytes] = text[position]
                n_label_bytes += 1
            label_text[n_label_bytes] = NEWLINE
            n_label_bytes += 1
            if text[i] != COMMA:
                break
            if not multilabel:
                problem, start = SEVERAL_LABELS, first
                break
            i = _skip_blanks(text, i + 1)

        while problem == FINE:
            i = _skip_blanks(text, i)
            if text[i] == NEWLINE or text[i] == HASH:
                break
            start = i
            feature = 0
            while ZERO <= text[i] <= NINE and i - start < MAX_DIGITS:
                feature = feature * 10 + (text[i] - ZERO)
                i += 1
            if i == start or text[i] != COLON:
                if _is_query(text, start):
                    i = _token_stop(text, start)
                    continue
                is_large = i - start == MAX_DIGITS and ZERO <= text[i] <= NINE
                problem = LARGE_ID if is_large else BAD_FEATURE
                break
            value_start = i + 1
            number, i, outcome = _read_number(text, value_start)
            if outcome == MALFORMED:
                problem = BAD_VALUE
                break
            ids[n_entries] = feature
            values[n_entries] = number
            if outcome == HARD:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = n_entries, line, line_start
                hard[n_hard, 3], hard[n_hard, 4] = value_start, i
                n_hard += 1
            n_entries += 1
        row_stops[n_rows] = n_entries
        row_lines[n_rows] = line
        label_stops[n_rows] = n_labels
        n_rows += 1
        if problem == FINE:
            i = _next_line(text, i)
    stop = start if problem == FINE else _token_stop(text, start)
    return (
        ids[:n_entries],
        values[:n_entries],
        row_stops[:n_rows],
        row_lines[:n_rows],
        labels[:n_labels].copy(),
        label_stops[:n_rows],
        label_text[:n_label_bytes].copy(),
        has_text_labels,
        hard[:n_hard].copy(),
        (problem, line, line_start, start, stop),
        line,
    )


@njit(cache=True, nogil=True)
def _read_number(  # noqa: C901, PLR0912  (the grammar of a number)
    text: NDArray[np.uint8], i: int
) -> tuple[float, int, int]:
    """Value, where it stops, and how it went."""
    is_negative = text[i] == MINUS
    if is_negative or text[i] == PLUS:
        i += 1
    mantissa, n_digits, n_seen, scale = 0, 0, 0, 0
    is_exact = True
    has_point = False
    while True:
        byte = text[i]
        if ZERO <= byte <= NINE:
            n_seen += 1
            scale -= has_point
            if n_digits == MAX_DIGITS:
                is_exact = False
            else:
                mantissa = mantissa * 10 + (byte - ZERO)
                n_digits += mantissa > 0
        elif byte == DOT and not has_point:
            has_point = True
        else:
            break
        i += 1
    if n_seen == 0:
        return 0.0, i, MALFORMED
    if text[i] == SMALL_E or text[i] == LARGE_E:
        i += 1
        is_small = text[i] == MINUS
        if is_small or text[i] == PLUS:
            i += 1
        exponent, exponent_start = 0, i
        while ZERO <= text[i] <= NINE:
            exponent = min(exponent * 10 + (text[i] - ZERO), MAX_EXPONENT)
            i += 1
        if i == exponent_start:
            return 0.0, i, MALFORMED
        scale += -exponent if is_small else exponent
    if text[i] > SPACE and text[i] != HASH:
        return 0.0, i, MALFORMED
    value, is_right = 0.0, is_exact
    if is_exact and mantissa > 0:
        value, is_right = _scale(mantissa, scale)
    return (-value if is_negative else value), i, (READ if is_right else HARD)


@njit(cache=True, nogil=True)
def _scale(mantissa: int, scale: int) -> tuple[float, bool]:
    """Return the double nearest to mantissa * 10^scale, and whether that is certain."""
    if scale < -22 or scale > 22:
        return 0.0, False
    if mantissa < EXACT_INTEGER:
        if scale < 0:
            return mantissa / EXACT_POWERS[-scale], True
        return mantissa * EXACT_POWERS[scale], True
    if scale >= 0:
        return 0.0, False
    power = EXACT_POWERS[-scale]
    low_bits = mantissa & 2047  # the rest has at most 53 significant bits, so it is exact
    high = np.float64(mantissa - low_bits)
    quotient = high / power
    product, error = _exact_product(quotient, power)
    rest = ((high - product) - error + np.float64(low_bits)) / power
    value = quotient + rest * (1 - DOUBT)
    return value, value == quotient + rest * (1 + DOUBT)


@njit(cache=True, nogil=True)
def _exact_product(a: float, b: float) -> tuple[float, float]:
    """Dekker's product: a * b is exactly the sum of the two results."""
    product = a * b
    a_high = SPLITTER * a - (SPLITTER * a - a)
    b_high = SPLITTER * b - (SPLITTER * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


@njit(cache=True, nogil=True)
def _read_label(text: NDArray[np.uint8], start: int, stop: int) -> tuple[int, bool]:
    """Return the integer that a label is, and whether it is one; '007' is a name, not a number."""
    i = start
    is_negative = text[i] == MINUS
    if is_negative or text[i] == PLUS:
        i += 1
    n_digits = stop - i
    if n_digits == 0 or n_digits > MAX_DIGITS or (text[i] == ZERO and n_digits > 1):
        return 0, False
    value = 0
    while i < stop:
        if text[i] < ZERO or text[i] > NINE:
            return 0, False
        value = value * 10 + (text[i] - ZERO)
        i += 1
    return (-value if is_negative else value), True


@njit(cache=True, nogil=True)
def _is_query(text: NDArray[np.uint8], i: int) -> bool:
    """Whether a token starts with ``qid:`` and goes on with digits only, as rankers write it."""
    stop = _token_stop(text, i)
    if stop - i < 5 or text[i] != SMALL_Q or text[i + 1] != SMALL_I or text[i + 2] != SMALL_D:
        return False
    if text[i + 3] != COLON:
        return False
    for position in range(i + 4, stop):
        if text[position] < ZERO or text[position] > NINE:
            return False
    return True


@njit(cache=True, nogil=True)
def _skip_blanks(text: NDArray[np.uint8], i: int) -> int:
    while text[i] <= SPACE and text[i] != NEWLINE:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _token_stop(text: NDArray[np.uint8], i: int) -> int:
    while text[i] > SPACE and text[i] != HASH:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _next_line(text: NDArray[np.uint8], i: int) -> int:
    while text[i] != NEWLINE:
        i += 1
    return i + 1
