"""What the page works on: robot, logs, columns and settings, the task that runs, and results.

The session is an `Experiment` that is changed step by step. Before anything is computed it is written as an
experiment file, and the worker reads this file: the command line repeats the same with it.
"""

from __future__ import annotations

import glob
import itertools
import re
import shlex
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.common.settings import LeftOpen
from dynid.estimator.estimator import MAKERS
from dynid.excitation.case_motions import case_motions
from dynid.experiment.experiment import Experiment, LogEntry, read_experiment
from dynid.experiment.file import write_experiment
from dynid.mechanism.load import builtin_robots, load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import READERS, ending
from dynid.motion.settings import ColumnMap
from dynid.motion.sources import each_log
from dynid.motion.units import FACTORS
from dynid.problem import as_asked
from dynid.projection.model import model_names
from dynid.studio.job import Job
from dynid.studio.mapping import Columns, column_rows, columns_of, remapped, unit_in_name
from dynid.studio.results import Results
from dynid.studio.work import design_options

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
_OPTIONS = ("model", "estimator", "auto", "hold_out", "purpose")


class Session:
    """One page. Its methods may be called from several threads.

    Attributes:
        folder: In which experiment files and results are written; typed paths are relative to it.
        results: Of this session, and those that were opened.
        job: The last task.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.results = Results()
        self.job: Job | None = None
        self._lock, self._drawing = threading.RLock(), threading.Lock()
        self.requests = threading.Lock()
        self._experiment: Experiment | None = None
        self._mechanism: Mechanism | None = None
        self._logs: list[Log] = []
        self._columns = Columns()
        self._refusal = ""
        self._check: dict[str, Any] | None = None
        self._exported: dict[str, Any] | None = None
        self._commands: list[str] = []
        self._revision = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="dynid-studio-", ignore_cleanup_errors=True)

    def expect(self, revision: int | None) -> None:
        """Refuse a request of a page that shows an earlier robot, columns or settings than these."""
        with self._lock:
            if revision not in (None, self._revision):
                raise InputError(
                    "robot, columns or settings were changed in another tab",
                    remedy="this page shows them now: repeat it if you still want it",
                )

    def load(self, robot: str, logs: Sequence[str] = (), validate: Sequence[str] = ()) -> None:
        """Take a robot and logs, by built-in name and path; or an experiment file instead of the robot."""
        place = self._place(robot)
        name = str(place) if place.is_file() else robot
        if not logs and place.is_file() and _is_experiment(place):
            asked = read_experiment(place).changed(out=None)
        else:
            asked = Experiment(
                robot=name,
                logs=tuple(LogEntry(str(self._log(entry))) for entry in logs),
                validate=tuple(LogEntry(str(self._log(entry))) for entry in validate),
                name=Path(name).stem,
            )
        mechanism = as_asked(load_robot(asked.robot), asked)
        with self._lock:
            self._take(asked, mechanism)

    def map(
        self,
        key: str,
        column: str,
        unit: str | None = None,
        scale: float = 1.0,
        offset: float = 0.0,
        delay: float = 0.0,
    ) -> None:
        """Read a signal from another column; an empty column leaves the choice to dynid.

        An empty unit is SI; None: the one in the name of the column, else SI.
        """
        with self._lock:
            asked, mechanism = self._loaded()
            numbers = float(scale), float(offset), float(delay)
            unit = unit_in_name(mechanism, key, column) if unit is None else unit
            chosen = ColumnMap(column, unit or None, *numbers) if column else None
            self._take(remapped(mechanism, self._columns, asked, key, chosen), mechanism)

    def settings(self, **options: Any) -> None:
        """Change `model`, `estimator`, `auto`, `hold_out` or `purpose`; None is the default."""
        unknown = set(options) - set(_OPTIONS)
        if unknown:
            raise InputError(f"no setting '{min(unknown)}'", remedy=f"settings: {', '.join(_OPTIONS)}")
        with self._lock:
            asked, _ = self._loaded()
            usual = Experiment(robot=asked.robot)
            changes = {key: getattr(usual, key) if value is None else value for key, value in options.items()}
            if changes.get("estimator", asked.estimator) != asked.estimator:
                changes["estimator_options"] = {}
            asked = asked.changed(**changes)
            self._take(asked, as_asked(load_robot(asked.robot), asked))

    def check(self) -> None:
        """Start the log doctor."""
        with self._lock:
            self._idle()
            asked, _ = self._loaded()
            file = Path(self._scratch.name) / f"check-{self._revision}.yaml"
            file.unlink(missing_ok=True)
            write_experiment(asked, self._logs, file)
            revision = self._revision
            self._start("check", {"experiment": str(file)}, lambda done: self._checked(revision, done))

    def identify(self, name: str) -> None:
        """Write the experiment NAME.yaml and start to identify with it; the result is results/NAME."""
        with self._lock:
            self._idle()
            asked, _ = self._loaded()
            if self._refusal:
                raise InputError(self._refusal)
            file = self.folder / f"{_plain(name)}.yaml"
            out = self.folder / "results" / name
            if out.exists():
                raise InputError("this result exists already", file=out, remedy="choose another name")
            write_experiment(asked.changed(name=name), self._logs, file)
            self._commands.append(f"dynid identify {shlex.quote(file.name)}")
            self._start("identify", {"experiment": str(file), "out": str(out)}, self._identified)

    def excite(
        self,
        name: str,
        controllers: Sequence[str] = (),
        controller_rate: float | None = None,
        after: int | None = None,
        **options: Any,
    ) -> None:
        """Start to design an exciting motion, or releases of a cable robot; it is written to results/NAME.

        Args:
            name: Of the motion.
            controllers: Formats in which the run is written too.
            controller_rate: Their rate, in [Hz]; None: usual for each format.
            after: Result of the list that the motion complements; None: none.
            options: Of `dynid excite`, those of `DESIGN_OPTIONS` of the worker.
        """
        with self._lock:
            self._idle()
            asked, _ = self._loaded()
            out = self.folder / "results" / _plain(name)
            if out.exists():
                raise InputError("this folder exists already", file=out, remedy="choose another name")
            settings, words = design_options(options)
            if after is not None:
                settings["after"] = [str(self.results.path(after))]
                words += ["--after", self._shown(self.results.path(after))]
            words += [part for format_name in controllers for part in ("--for-controller", str(format_name))]
            rate = None if controller_rate is None or not controllers else float(controller_rate)
            words += [] if rate is None else [f"--controller-rate={rate:g}"]
            self._commands.append(
                shlex.join(["dynid", "excite", self._robot(asked), *words, "--out", self._shown(out)])
            )
            work = {"robot": str(asked.robot), "settings": settings, "out": str(out)}
            formats = {"controllers": list(controllers), "controller_rate": rate}
            self._start("excite", {**work, **formats}, self.results.designed)

    def cancel(self) -> None:
        """Stop the task that runs."""
        job = self.job
        if job is not None:
            job.cancel()

    def open_result(self, path: str) -> None:
        """Add an earlier result, a folder or its result.json."""
        self.results.add(self._place(path))

    def compare(self, a: int, b: int) -> None:
        """Compare two results of the list."""
        with self._lock:
            self._idle()
            first, second = self.results.path(a), self.results.path(b)
            if first == second:
                raise InputError("a result cannot be compared with itself", remedy="choose two results")
            out = self.folder / "results" / f"{first.name}_{second.name}_compare"
            self._commands.append(
                shlex.join(
                    ["dynid", "compare", *map(self._shown, (first, second)), "--out", self._shown(out)]
                )
            )
            asked = {"results": [str(first), str(second)], "out": str(out)}
            self._start("compare", asked, lambda done: self.results.compared(Path(done["folder"])))

    def export(self, result: int, formats: Sequence[str]) -> None:
        """Write a result in formats of other programs, beside its folder."""
        from dynid.exporters import EXPORTERS

        with self._lock:
            self._idle()
            if not formats:
                raise InputError("no format is chosen", remedy=f"formats: {', '.join(EXPORTERS)}")
            path = self.results.path(result)
            out = self.folder / "results" / f"{path.name}-export"
            to = [part for kind in formats for part in ("--to", str(kind))]
            self._commands.append(
                shlex.join(["dynid", "export", self._shown(path), *to, "--out", self._shown(out)])
            )
            asked = {"result": str(path), "formats": [str(kind) for kind in formats], "out": str(out)}
            self._start("export", asked, self._keep_export)

    def view(self) -> str:
        """The page with the moving robot."""
        from dynid.studio.view import view_page

        with self._lock:
            asked, mechanism = self._loaded()
            unseen = sum(1 for _ in each_log(asked.validate)) if self._logs else 0
            logs = self._logs[: len(self._logs) - unseen]
        with self._drawing:  # takes seconds for closed robots: other requests need not wait
            return view_page(mechanism, logs, asked)

    def state(self) -> dict[str, Any]:
        """All that the page shows, as plain values."""
        from dynid.excitation.export import CONTROLLERS
        from dynid.exporters import EXPORTERS

        with self._lock:
            asked, mechanism = self._experiment, self._mechanism
            known = {
                "folder": str(self.folder),
                "robots": list(builtin_robots()),
                "models": list(model_names()),
                "estimators": list(MAKERS),
                "formats": list(EXPORTERS),
                "controllers": list(CONTROLLERS),
                "units": list(FACTORS),
                "job": None if self.job is None else self.job.state(),
                "check": self._check,
                "exported": self._exported,
                "results": self.results.state(),
                "commands": list(self._commands),
                "revision": self._revision,
                "loaded": None,
            }
            if asked is None or mechanism is None:
                return known
            loaded = {
                "robot": self._robot(asked),
                "swings": case_motions(mechanism) is not None,
                "name": asked.name,
                "free": self._free(asked.name),
                "motion": self._free(f"{asked.name}-motion"),
                "bodies": len(mechanism.bodies),
                "joints": [joint.name for joint in mechanism.joints],
                "given": [self._shown(Path(entry.file)) for entry in asked.logs],
                "validate": [self._shown(Path(entry.file)) for entry in asked.validate],
                "logs": [_summary(log) for log in self._logs],
                "refusal": self._refusal,
                "columns": {
                    "names": list(self._columns.names),
                    "rows": column_rows(mechanism, self._columns, asked) if asked.logs else [],
                },
                "settings": {key: _given(getattr(asked, key)) for key in _OPTIONS},
            }
            return known | {"loaded": loaded}

    def close(self) -> None:
        """Stop what runs, and remove temporary files."""
        self.cancel()
        self._scratch.cleanup()

    def _take(self, asked: Experiment, mechanism: Mechanism) -> None:
        """Use this experiment; logs that are refused keep their place, with the reason."""
        from dynid.pipeline import read_logs

        self._experiment, self._mechanism = asked, mechanism
        self._columns, self._logs, self._refusal = columns_of(mechanism, asked), [], ""
        try:
            self._logs = read_logs(asked)
        except InputError as error:
            self._refusal = error.message
        self._check = None
        self._revision += 1

    def _loaded(self) -> tuple[Experiment, Mechanism]:
        if self._experiment is None or self._mechanism is None:
            raise InputError("no robot is loaded", remedy="load one first")
        return self._experiment, self._mechanism

    def _idle(self) -> None:
        if self.job is not None and self.job.running:
            raise InputError(f"'{self.job.task}' is running", remedy="wait for its end, or cancel it")

    def _start(self, task: str, asked: dict[str, Any], finish: Callable[[dict[str, Any]], None]) -> None:
        self.job = Job(task, asked, self.folder, finish)

    def _checked(self, revision: int, done: dict[str, Any]) -> None:
        with self._lock:
            if revision != self._revision:
                raise InputError(
                    "robot, columns or settings changed meanwhile", remedy="check the logs again"
                )
            self._check = done

    def _identified(self, done: dict[str, Any]) -> None:
        self.results.add(Path(done["result"]), done["refusal"])

    def _keep_export(self, done: dict[str, Any]) -> None:
        with self._lock:
            self._exported = done

    def _place(self, text: str) -> Path:
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise InputError("no path is given", remedy="type the path of a file")
        return self.folder / Path(text.strip()).expanduser()

    def _log(self, text: str) -> Path:
        """A typed log. Folders and patterns are looked through only inside the folder of the session."""
        path = self._place(text)
        several = (path.is_dir() and ending(path) not in READERS) or (
            not path.exists() and glob.has_magic(str(path))
        )
        if several and not path.resolve().is_relative_to(self.folder):
            raise InputError(
                "folders and patterns are read only inside the folder in which the studio was started",
                file=text,
                remedy="give single files, or start the studio there",
            )
        return path

    def _free(self, name: str) -> str:
        """A name whose files do not exist yet."""
        stem = name if _NAME.fullmatch(name) else "run"
        return next(
            f"{stem}-{k}"
            for k in itertools.count(1)
            if not (self.folder / f"{stem}-{k}.yaml").exists()
            and not (self.folder / "results" / f"{stem}-{k}").exists()
        )

    def _robot(self, asked: Experiment) -> str:
        """As it is typed in a command."""
        path = Path(str(asked.robot))
        return self._shown(path) if path.is_file() else str(asked.robot)

    def _shown(self, path: Path) -> str:
        inside = path.resolve().is_relative_to(self.folder)
        return str(path.resolve().relative_to(self.folder)) if inside else str(path)


def _given(value: Any) -> Any:
    """None for a setting that is left open."""
    return None if isinstance(value, LeftOpen) else value


def _plain(name: str) -> str:
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise InputError(
            f"'{name[:80]}' is not a name for a file", remedy="letters, digits, '.', '-' and '_', e.g. run-1"
        )
    return name


def _is_experiment(file: Path) -> bool:
    """Whether a YAML file names logs; robot files do not."""
    if file.suffix.lower() not in (".yaml", ".yml"):
        return False
    with file.open(encoding="utf-8", errors="replace") as stream:
        return any(line.startswith("logs:") for line in stream)


def _summary(log: Log) -> dict[str, Any]:
    seconds = float(log.t[-1] - log.t[0]) if len(log.t) else 0.0
    return {"name": log.name, "samples": len(log.t), "seconds": seconds, "rate": 1.0 / log.dt}
