"""What the page works on: robot, logs, columns and settings, the task that runs, and results.

The session is an `Experiment` that is changed step by step. Whatever is computed is first written as an
experiment file, NAME.yaml, and the worker reads this file: `dynid TASK NAME.yaml` repeats the same.
"""

from __future__ import annotations

import shlex
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.common.settings import LeftOpen
from dynid.estimator.estimator import MAKERS
from dynid.excitation.case_motions import case_motions
from dynid.experiment.experiment import TASKS, Experiment, LogEntry
from dynid.experiment.file import is_experiment, load_experiment, write_experiment
from dynid.experiment.tasks import CompareSettings, ExciteSettings, ExportSettings
from dynid.mechanism.load import builtin_robots, load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.settings import ColumnMap
from dynid.motion.sources import each_log
from dynid.problem import as_asked
from dynid.projection.model import model_names
from dynid.studio.folder import offered, shown, typed_log, typed_path
from dynid.studio.job import Job
from dynid.studio.mapping import (
    Columns,
    column_rows,
    columns_of,
    plain_number,
    remapped,
    unit_in_name,
)
from dynid.studio.results import Results, free_name, numbered, plain_name, result_place

_OPTIONS = ("model", "estimator", "auto", "hold_out", "purpose")
_BOXES = ("period", "floor", "clearance", "home", "search", "starts", "after")
_DESIGN = (*_BOXES, "controllers", "controller_rate")


class Session:
    """One page. Requests that change it come one after the other; it is read, and a task ends, at any time.

    Attributes:
        folder: In which experiment files and results are written; typed paths are relative to it.
        results: Of this session, and those that were opened.
        job: The last task.
        requests: Held by the request that is changing it.
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
        self._revision = self._read = self._opened = 0
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
        place = typed_path(self.folder, robot)
        opened = is_experiment(place)
        if opened:
            if (logs or validate) and [list(logs), list(validate)] != self._given_logs():
                raise InputError(
                    "an experiment file names its own logs",
                    file=robot,
                    remedy="remove the other logs, or give the description of the robot",
                )
            asked = self.results.opened(load_experiment(place, need_logs=False))
        else:
            asked = Experiment(
                robot=str(place) if place.is_file() else robot,
                logs=tuple(LogEntry(str(typed_log(self.folder, entry))) for entry in logs),
                validate=tuple(LogEntry(str(typed_log(self.folder, entry))) for entry in validate),
                name=Path(robot).stem,
            )
        mechanism = as_asked(load_robot(asked.robot), asked) if asked.robot else None
        self._take(asked, mechanism, opened=opened)

    def map(
        self,
        key: str,
        column: str,
        unit: str | None = None,
        scale: float | str = 1.0,
        offset: float | str = 0.0,
        delay: float | str = 0.0,
    ) -> None:
        """Read a signal from another column; an empty column leaves the choice to dynid.

        An empty unit is SI; None: the one in the name of the column, else SI.
        """
        asked, mechanism = self._loaded()
        numbers = [plain_number(*one) for one in (("scale", scale), ("offset", offset), ("delay", delay))]
        unit = unit_in_name(mechanism, key, column) if unit is None else unit
        chosen = ColumnMap(column, unit or None, *numbers) if column else None
        self._take(remapped(mechanism, self._columns, asked, key, chosen), mechanism)

    def settings(self, **options: Any) -> None:
        """Change `model`, `estimator`, `auto`, `hold_out` or `purpose`; None is the default."""
        _refuse_unknown(options, _OPTIONS)
        asked, _ = self._loaded()
        usual = Experiment(robot=asked.robot)
        changes = {key: getattr(usual, key) if value is None else value for key, value in options.items()}
        if changes.get("estimator", asked.estimator) != asked.estimator:
            changes["estimator_options"] = {}
        changed = asked.changed(**changes)
        if changed.model != asked.model:  # only the model matters to what is read
            self._take(changed, as_asked(load_robot(asked.robot), changed))
            return
        with self._lock:
            self._experiment, self._check = changed, None
            self._revision += 1

    def check(self) -> None:
        """Start the log doctor."""
        with self._lock:
            self._idle()
            asked, _ = self._loaded()
            revision = self._revision
            file = Path(self._scratch.name) / f"check-{revision}.yaml"
            file.unlink(missing_ok=True)
            write_experiment(asked, self._logs, file)
            self.job = Job("check", file, self.folder, lambda done: self._checked(revision, done))

    def identify(self, name: str, follow: bool = True) -> None:
        """Write the experiment NAME.yaml and start to identify with it; the result is results/NAME.

        Args:
            name: Of the result.
            follow: Whether the comparison and the export of the opened file are made too.
        """
        with self._lock:
            asked, _ = self._loaded()
            if self._refusal:
                raise InputError(self._refusal)
            if not follow:
                asked = asked.changed(compare=None, export=None)
            self._run("identify", plain_name(name), asked.changed(excite=None), self._logs)

    def excite(self, name: str, **options: Any) -> None:
        """Write NAME.yaml and start to design its exciting motion, or releases of a cable robot.

        Args:
            name: Of the motion, which is written to results/NAME.
            options: Of `ExciteSettings`, those of the page; None is the default. `search` is a number.
        """
        _refuse_unknown(options, _DESIGN)
        with self._lock:
            asked, _ = self._loaded()
            before, usual = asked.excite or ExciteSettings(), ExciteSettings()
            changes = {key: getattr(usual, key) if value is None else value for key, value in options.items()}
            if options.get("search") is not None:
                changes["search"] = before.search.changed(count=options["search"])
            if "after" in changes:
                changes["after"] = [str(typed_path(self.folder, path)) for path in changes["after"]]
            settings = before.changed(**changes)
            written = settings.changed(out=result_place(self.folder, plain_name(name)))
            self._run("excite", name, Experiment(robot=asked.robot, excite=written))
            self._experiment = asked.changed(excite=settings)

    def cancel(self) -> None:
        """Stop the task that runs."""
        if self.job is not None:
            self.job.cancel()

    def open_result(self, path: str) -> None:
        """Add an earlier result, a folder or its result.json."""
        self.results.add(typed_path(self.folder, path))

    def compare(self, a: int, b: int) -> None:
        """Compare two results of the list."""
        with self._lock:
            first, second = self.results.path(a), self.results.path(b)
            if first == second:
                raise InputError("a result cannot be compared with itself", remedy="choose two results")
            asked = self._asked_of_results()
            before = asked.compare if asked.compare and asked.compare.results else CompareSettings()
            name = free_name(self.folder, f"{first.name}_{second.name}_compare")
            settings = before.changed(results=(first, second), out=result_place(self.folder, name))
            self._run("compare", name, asked.changed(compare=settings, export=None))

    def export(self, result: int, formats: Sequence[str]) -> None:
        """Write a result in formats of other programs, beside its folder."""
        with self._lock:
            path = self.results.path(result)
            name, to = free_name(self.folder, f"{path.name}-export"), tuple(formats)
            asked = self._asked_of_results()
            before = asked.export or ExportSettings(to=to)
            settings = before.changed(to=to, result=path, out=result_place(self.folder, name))
            self._run("export", name, asked.changed(compare=None, export=settings))

    def view(self) -> str:
        """The page with the moving robot."""
        from dynid.studio.view import view_page

        with self._lock:
            asked, mechanism = self._loaded()
            unseen = sum(1 for _ in each_log(asked.validate)) if self._logs else 0
            logs = self._logs[: len(self._logs) - unseen]
        with self._drawing:  # takes seconds for closed robots: other requests need not wait
            return view_page(mechanism, logs, asked)

    def in_webgl(self, kind: str, index: str) -> str | None:
        """A page with the robot of the `view`, of a `result` or of a `motion`, drawn by Viser; or None."""
        from dynid.studio.view import has_viser, in_webgl

        if not has_viser():
            return None
        if kind == "view":
            return in_webgl(self.view(), self._mechanism)
        found = self.results.file(kind, index, "report.html")
        return None if found is None else in_webgl(found[0].decode(), self._mechanism)

    def state(self) -> dict[str, Any]:
        """All that the page shows, as plain values."""
        from dynid.excitation.export import CONTROLLERS
        from dynid.exporters import EXPORTERS
        from dynid.studio.view import has_viser

        with self._lock:
            asked, mechanism = self._experiment, self._mechanism
            known = {
                "folder": str(self.folder),
                "robots": list(builtin_robots()),
                "offered": offered(self.folder),
                "models": list(model_names()),
                "estimators": list(MAKERS),
                "formats": list(EXPORTERS),
                "controllers": list(CONTROLLERS),
                "viser": has_viser(),
                "job": None if self.job is None else self.job.state(),
                "check": self._check,
                "exported": self._exported,
                "results": self.results.state(),
                "commands": list(self._commands),
                "revision": self._revision,
                "read": self._read,  # the revision that read the robot and logs: settings do not move them
                "opened": self._opened,
                "asked": dict.fromkeys(TASKS),
                "loaded": None,
            }
            if asked is not None:
                sections = {key: getattr(asked, key) for key in TASKS}
                known["asked"] = {key: one and one.tree() for key, one in sections.items()}
            if asked is None or mechanism is None:
                return known
            given, validate = self._given_logs()
            loaded = {
                "robot": self._robot(asked),
                "swings": case_motions(mechanism) is not None,
                "name": asked.name,
                "free": free_name(self.folder, numbered(asked.name)),
                "motion": free_name(self.folder, numbered(asked.name, "-motion")),
                "bodies": len(mechanism.bodies),
                "joints": [joint.name for joint in mechanism.joints],
                "given": given,
                "validate": validate,
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

    def _take(self, asked: Experiment, mechanism: Mechanism | None, *, opened: bool = False) -> None:
        """Read the logs, then use this experiment; logs that are refused keep their place, with the reason.

        A file that only compares or exports results has no robot.
        """
        from dynid.pipeline import read_logs

        columns, logs, refusal = Columns(), list[Log](), ""
        if mechanism is not None:  # takes seconds for long logs: other tabs show the state before
            columns = columns_of(mechanism, asked)
            try:
                logs = read_logs(asked)
            except InputError as error:
                refusal = error.message
        with self._lock:
            self._experiment, self._mechanism = asked, mechanism
            self._columns, self._logs, self._refusal = columns, logs, refusal
            self._check = None
            self._revision += 1
            self._read = self._revision
            self._opened += opened

    def _loaded(self) -> tuple[Experiment, Mechanism]:
        if self._experiment is None or self._mechanism is None:
            raise InputError("no robot is loaded", remedy="load one first")
        return self._experiment, self._mechanism

    def _asked_of_results(self) -> Experiment:
        """What the opened file asks of results; its robot replaces theirs only if it has no logs."""
        asked = self._experiment or Experiment(robot="")
        of_results = not asked.logs and (asked.compare is not None or asked.export is not None)
        robot = asked.robot if of_results else ""
        return Experiment(robot=robot, compare=asked.compare, export=asked.export)

    def _idle(self) -> None:
        if self.job is not None and self.job.running:
            raise InputError(f"'{self.job.task}' is running", remedy="wait for its end, or cancel it")

    def _run(self, task: str, name: str, asked: Experiment, logs: Sequence[Log] = ()) -> None:
        """Write what is asked as NAME.yaml, which `dynid TASK` repeats, and start it from this file."""
        self._idle()
        file, out = self.folder / f"{name}.yaml", result_place(self.folder, name)
        if out.exists():
            raise InputError("this folder exists already", file=out, remedy="choose another name")
        write_experiment(asked.changed(name=name), logs, file)

        def finish(done: dict[str, Any]) -> None:
            self._show(done)
            self._commands.append(shlex.join(["dynid", task, file.name]))

        self.job = Job(task, file, self.folder, finish)

    def _show(self, done: dict[str, Any]) -> None:
        """Add the outcome of a task to what the page shows."""
        with self._lock:
            if "motion" in done:
                self.results.designed(done["motion"])
            if "result" in done:
                self.results.add(Path(done["result"]), done["refusal"])
            if "compared" in done:
                self.results.compared(done["compared"])
            self._exported = done.get("exported", self._exported)

    def _checked(self, revision: int, done: dict[str, Any]) -> None:
        with self._lock:
            if revision != self._revision:
                raise InputError(
                    "robot, columns or settings changed meanwhile", remedy="check the logs again"
                )
            self._check = done

    def _given_logs(self) -> list[list[str]]:
        """The logs to identify from and to validate on, as the page shows them."""
        asked = self._experiment or Experiment(robot="")
        return [[shown(self.folder, Path(log.file)) for log in logs] for logs in (asked.logs, asked.validate)]

    def _robot(self, asked: Experiment) -> str:
        """As it is typed in a command."""
        path = Path(str(asked.robot))
        return shown(self.folder, path) if path.is_file() else str(asked.robot)


def _refuse_unknown(options: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in sorted(set(options) - set(known)):
        raise InputError(f"no setting '{name}'", remedy=f"settings: {', '.join(known)}")


def _given(value: Any) -> Any:
    """None for a setting that is left open."""
    return None if isinstance(value, LeftOpen) else value


def _summary(log: Log) -> dict[str, Any]:
    seconds = float(log.t[-1] - log.t[0]) if len(log.t) else 0.0
    return {"name": log.name, "samples": len(log.t), "seconds": seconds, "rate": 1.0 / log.dt}
