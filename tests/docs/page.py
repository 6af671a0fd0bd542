"""Pages of the documentation as something to run: their blocks of code, in order.

A block of ``python`` is executed, all of a page in one namespace; a block of ``console`` has one
command of taxofit on each line. Comments before a block, or on top of a page, say what is special:

    <!-- test: skip (reason) -->          the block is not run
    <!-- test: output -->                 the text is what the block before it printed
    <!-- test: service -->                the command keeps running until the end of the page
    <!-- test: slow, needs CLEF -->       on top: the page takes minutes, and needs this data
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Block", "Page"]

BLOCK = re.compile(
    r"(?:^<!-- test: (?P<mark>[^>]*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TOP = re.compile(r"<!-- test: (?P<mark>[^>]*?) -->\n#")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, its lines, its mark, and the line of the page it begins on."""

    language: str
    code: str
    mark: str
    line: int

    @property
    def is_skipped(self) -> bool:
        if not self.mark.startswith("skip"):
            return False
        assert re.fullmatch(r"skip \(.+\)", self.mark), f"line {self.line}: skipped for no reason"
        return True

    @property
    def commands(self) -> list[list[str]]:
        """The arguments of each command of taxofit; anything else on a line is an error."""
        commands = [shlex.split(line, comments=True) for line in self.code.splitlines()]
        for command in filter(None, commands):
            assert command[0] == "taxofit", f"line {self.line}: nobody runs {command}"
        return [command[1:] for command in commands if command]


@dataclass(frozen=True)
class Page:
    """A page, read."""

    text: str

    @classmethod
    def read(cls, file: Path) -> Page:
        return cls(file.read_text(encoding="utf-8"))

    @property
    def is_slow(self) -> bool:
        return "slow" in self._top

    @property
    def needs(self) -> list[str]:
        """Folders of real data that the page reads."""
        return re.findall(r"needs (\S+)", self._top)

    @property
    def _top(self) -> str:
        found = TOP.match(self.text)
        return found["mark"] if found else ""

    @property
    def blocks(self) -> list[Block]:
        return [
            Block(
                found["language"],
                found["code"],
                found["mark"] or "",
                1 + self.text.count("\n", 0, found.start("language")),
            )
            for found in BLOCK.finditer(self.text)
        ]
