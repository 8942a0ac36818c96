"""A designed motion as a folder: search, files, and the journal of an interrupted search."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.excitation.case_motions import CaseMotions, case_motions
from dynid.excitation.export import check_controllers
from dynid.excitation.files import FILES, OTHERS, excitation_files
from dynid.experiment.experiment import Experiment
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism.load import load_robot
from dynid.report.output import claimed_folder, replace_folder

if TYPE_CHECKING:
    from dynid.excitation.excite import Progress

_FEW = 4  # starts that one process runs


@dataclass(frozen=True)
class Design:
    """A folder that is locked for one motion.

    Attributes:
        motions: How a motion that no motor leads is designed.
        path: The folder; journal: file of finished starts beside it.
    """

    robot: str
    settings: ExciteSettings
    path: Path
    motions: CaseMotions | None = None

    @property
    def journal(self) -> Path:
        """Removed once the motion is written."""
        return self.path.parent / f"{self.path.name}.journal.jsonl"

    def search(
        self, jobs: int | None = None, progress: Progress | None = None, cluster: str | None = None
    ) -> Any:
        """The best motion; `jobs` processes (None: one for few starts, else all cores), or a Dask cluster."""
        from dynid.excitation.excite import excite

        count = jobs or (1 if self.settings.starts <= _FEW else os.cpu_count() or 1)
        return excite(
            self.robot,
            self.settings.changed(controllers=(), controller_rate=None, out=None),
            journal=self.journal,
            jobs=count,
            cluster=cluster,
            progress=progress,
        )

    def write(self, result: Any) -> tuple[str, ...]:
        """Replace the folder by the files of the motion; their names."""
        if self.motions is None:
            written = excitation_files(result, self.settings.controllers, self.settings.controller_rate)
        else:
            written = self.motions.files(result)
        replace_folder(self.path, written)
        self.journal.unlink(missing_ok=True)
        return tuple(written)


@contextlib.contextmanager
def designing(asked: Experiment) -> Iterator[Design]:
    """Check the motion that an experiment asks for and lock its folder, before a long search.

    Of the experiment, only the robot and the section `excite` are used; only an older motion is replaced.
    """
    settings = asked.excite or ExciteSettings()
    robot = str(asked.robot)
    mechanism = load_robot(robot)
    motions = case_motions(mechanism)
    if motions is None:
        settings.suited()
        check_controllers(settings.controllers, settings.controller_rate, mechanism)
    names = (*FILES, *OTHERS) if motions is None else motions.file_names
    usual = Path("results") / f"{Path(asked.name).name}_excitation"
    with claimed_folder(usual if settings.out is None else settings.out, names) as path:
        yield Design(robot, settings, path, motions)
