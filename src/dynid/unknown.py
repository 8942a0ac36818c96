"""Unknown: anything x in W(x) chi = Y(x) that is not linear, found around the linear fit.

    settle: find x, hand back the task at x        widen: add what x costs to the covariance

Some unknowns belong to the data (the robot without its load, drive gains, cable lengths): they are settled
once, and change robot or logs. The others belong to the equations (friction speeds, sensor mounting): every
refit settles them again. A plain arm has none, and none of their code is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dynid.case import task_case
from dynid.common.notices import Notice
from dynid.common.registry import Registry, loaded
from dynid.experiment.experiment import Experiment
from dynid.mechanism.drive_terms import LOADED, SEARCHED
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import owners_of
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem, Progress, prepare
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.covariance import CountedErrors
from dynid.statistics.estimate_parts import Description
from dynid.statistics.known_errors import KnownErrors

if TYPE_CHECKING:
    from dynid.fit import Fit


@dataclass(frozen=True, eq=False)
class Task:
    """Robot, logs and settings; `problem` is what is to be solved.

    Attributes:
        held_out: Logs to predict later: gains and loads are applied to them too.
        plans: Filters and masks of each log where they are chosen already; None: from the data.
        prepared: The problem, where it is joined already, or an unknown has changed its equations.
        progress: Called with a stage and the fraction of it done.
    """

    mechanism: Mechanism
    logs: tuple[Log, ...]
    experiment: Experiment
    held_out: tuple[Log, ...] = ()
    plans: Sequence[MotionPlan] | None = None
    prepared: Problem | None = None
    progress: Progress | None = None

    @cached_property
    def problem(self) -> Problem:
        """Mechanism and logs joined by the model."""
        return self.prepared or prepare(self.mechanism, self.logs, self.experiment, self.plans)


@dataclass(frozen=True, eq=False)
class Settled:
    """A task at the value that was found for one unknown.

    Attributes:
        choices: What was found, in words.
        widen: Adds what the unknown costs to the covariance of the parameters; None: nothing.
        counted_errors: Columns of the errors that `widen` counts: they are projected out of the residuals,
            which would count them again. Only one unknown may have them, and so with `description`.
        known_errors: Errors of values taken as known; None: they are exact.
        description: What was found about the description of the robot.
        add_values: Its own values join the parameters, after everything else is done with them.
    """

    task: Task
    choices: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    widen: Callable[[EstimateParts, Fit], EstimateParts] | None = None
    counted_errors: Callable[[Fit], CountedErrors | None] | None = None
    known_errors: KnownErrors | None = None
    add_values: Callable[[EstimateParts], EstimateParts] | None = None
    description: Callable[[Fit], Description] | None = None


def _never(_: object) -> bool:
    return False


@dataclass(frozen=True)
class Unknown:
    """One kind of unknown, and when a task has it; the code that settles it is imported only then.

    Attributes:
        settle: Finds it, from a task to `Settled`; the function, or where it is: "module:function".
        asked: Whether an experiment asks for it: then no other setting is chosen from the data.
        in_robot: Whether it belongs to a robot, whatever the experiment asks.
        of_equations: Whether every refit settles it again.
    """

    settle: str | Callable[[Task], Settled]
    asked: Callable[[Experiment], bool] = _never
    in_robot: Callable[[Mechanism], bool] = _never
    of_equations: bool = False


def _searched_friction(robot: Mechanism) -> bool:
    return bool(owners_of(robot, *LOADED)) or any(
        o not in robot.stribeck for o in owners_of(robot, *SEARCHED)
    )


# Unknowns of one case only are listed by that case.
UNKNOWNS: Registry[Unknown] = Registry(
    "dynid.unknowns",
    {
        "unloaded": Unknown(
            "dynid.unknowns.unloaded:settle_unloaded", lambda experiment: experiment.unloaded is not None
        ),
        "drive_gains": Unknown(
            "dynid.unknowns.drive_gains:settle_gains", lambda experiment: experiment.gains is not None
        ),
        "description": Unknown(
            "dynid.unknowns.description:settle_description",
            lambda experiment: experiment.unknown is not None,
            lambda robot: bool(robot.uncertain),
        ),
        "servo": Unknown(
            "dynid.unknowns.servo:settle_law", lambda experiment: bool(experiment.pd and experiment.pd.open)
        ),
        "friction": Unknown(
            "dynid.unknowns.friction:settle_friction", in_robot=_searched_friction, of_equations=True
        ),
    },
    gives=("dynid.unknown:Unknown",),
)


def unknowns_of(task: Task) -> tuple[Unknown, ...]:
    """The unknowns of a task, in the order in which they are settled; none for a plain arm."""
    active = [
        unknown
        for unknown in UNKNOWNS.values()
        if unknown.asked(task.experiment) or unknown.in_robot(task.mechanism)
    ]
    active += task_case(task.mechanism, task.experiment).unknowns
    return tuple(sorted(active, key=lambda unknown: unknown.of_equations))


def asks_for_unknowns(experiment: Experiment) -> bool:
    """Whether an experiment asks for unknowns by a key of its own."""
    return any(unknown.asked(experiment) for unknown in UNKNOWNS.values())


def settle(task: Task, *, refit: bool = False) -> tuple[Task, tuple[Settled, ...]]:
    """Settle the unknowns of a task one after the other.

    Args:
        task: Robot, logs and settings.
        refit: Only those that belong to the equations: robot and logs have theirs already.
    """
    done: list[Settled] = []
    for unknown in unknowns_of(task):
        if unknown.of_equations or not refit:
            done.append(loaded(unknown.settle)(task))
            task = done[-1].task
    return task, tuple(done)
