"""Words that a shell completes: built-in robots, formats, models; beside them, files."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import CompletionItem


class Words(click.types.StringParamType):
    """Text, which the command checks itself; a shell completes the words that begin so, and files if asked.

    Attributes:
        source: The words, as `first|second`; or what has them, as `module:name`, imported at completion.
        files: Whether a file may be given instead.
    """

    def __init__(self, source: str, *, files: bool = False) -> None:
        self.source, self.files = source, files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin so, with files of this folder; without any the shell looks for files."""
        words = [word for word in self._words() if word.startswith(incomplete)]
        if self.files and not words:
            return [CompletionItem(incomplete, type="file")]
        if self.files:
            words += sorted(file.name for file in Path().glob(f"{escape(incomplete)}*") if file.is_file())
        return [CompletionItem(word) for word in words]

    def _words(self) -> Iterable[str]:
        module, _, name = self.source.partition(":")
        if not name:
            return self.source.split("|")
        found = getattr(import_module(module), name)
        return (str(word) for word in (found() if callable(found) else found) if word)


ROBOT = Words("dynid.mechanism.load:builtin_robots", files=True)
MODEL = Words("dynid.projection.model:MODELS")
ESTIMATOR = Words("dynid.estimator.estimator:MAKERS")
FORMAT = Words("dynid.exporters:EXPORTERS")
PURPOSE = Words("dynid.statistics.estimate_parts:LIMITS")
ENGINE = Words("inverse|dynid|mujoco")
