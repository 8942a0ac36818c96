"""Progress bars: only for work that lasts, only on a terminal."""

from __future__ import annotations

import io

import pytest

from dynid.report import terminal
from dynid.report.terminal import ProgressBar


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "patience", "drawn"),
    [(_Terminal, 0.0, True), (_Terminal, 60.0, False), (io.StringIO, 0.0, False)],
)
def test_draws_on_a_terminal_after_a_while(monkeypatch, stream, patience, drawn):
    error = stream()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr(terminal, "_PATIENCE", patience)
    with ProgressBar() as bar:
        for stage in ("reading", "rows of a long log"):
            bar(stage, 0.5)
    assert ("rows of a long log" in error.getvalue()) is drawn
