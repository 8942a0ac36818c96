"""excite(): design an exciting trajectory for a robot, on one screen.

plan_inputs -> make_plan -> run_starts (journal) -> check the limits, predict sigma, write
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.settings import read
from dynid.common.versions import version_of
from dynid.excitation.case_motions import CaseDesign, case_motions
from dynid.excitation.closed import ClosedMotion, narrowed_limits
from dynid.excitation.inputs import plan_inputs
from dynid.excitation.optimal.checked import (
    LimitUse,
    Promise,
    linear_uses,
    promise,
    soft_uses,
    unkept_limits,
)
from dynid.excitation.optimal.multistart import Journal, run_starts
from dynid.excitation.optimal.soft import fine_motion
from dynid.excitation.optimal.starts import Start
from dynid.excitation.plan import (
    Plan,
    PlanInputs,
    assumed_floor,
    make_plan,
    make_starter,
)
from dynid.excitation.run import Run, check_home, run_of
from dynid.excitation.series import Series
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.sensors import measured_motion
from dynid.mechanism.load import load_robot, reference
from dynid.mechanism.mechanism import Mechanism
from dynid.regressor.kernels_ahead import prepare_kernels

Progress = Callable[[str, float], None]
_PROMISED = 400  # samples used to predict sigma
_RANDOM = 10  # random motions; the best of them is the reference for the gain


@dataclass(frozen=True, eq=False)
class Excitation:
    """The best motion found, and its predicted accuracy.

    Attributes:
        settings: As requested; plan_noise: noise of every actuator as used.
        rate: Sampling rate, in [Hz]; assumed: rate and noise as text, with their source.
        identified: Whether efforts are predicted with the existing result, not with the prior.
        names: Measured joints; q, dq, ddq at `t` are theirs, shape (n, m).
        motion: Of the coordinates moved (a closed robot's: see `ClosedMotion`).
        coefficients: Of the family, one column per moved coordinate.
        criterion: Value of the best start.
        starts: All starts; `best` is the number of the one taken.
        limits: Every limit with its margin.
        before, after: Predicted accuracy of the best of ten random motions and of the motion found.
        base_names, base_units: Of the base parameters.
        run: Approach from rest, the motion, and the way back.
    """

    robot: str
    settings: ExciteSettings
    names: tuple[str, ...]
    moved: tuple[str, ...]
    motion: Series
    coefficients: Float[Array, "m j"]
    t: Float[Array, "n"]
    q: Float[Array, "n _"]
    dq: Float[Array, "n _"]
    ddq: Float[Array, "n _"]
    criterion: float
    larger_is_better: bool
    starts: tuple[Start, ...]
    best: int
    limits: tuple[LimitUse, ...]
    before: Promise
    after: Promise
    base_names: tuple[str, ...]
    base_units: tuple[str, ...]
    plan: Plan
    plan_noise: tuple[float, ...]
    rate: float
    assumed: str
    identified: bool
    run: Run
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        """One line; `print` shows the summary."""
        found = f"{self.settings.criterion} {self.criterion:.4g}, starts: {len(self.starts)}"
        return f"Excitation({self.robot!r}: {len(self.moved)} coordinates, {self.t[-1]:g} s, {found})"

    def __str__(self) -> str:
        """Accuracy, limits and pose of rest, as `dynid excite` prints them."""
        from dynid.excitation.files import summary

        return summary(self)

    def save(
        self,
        folder: str | os.PathLike[str],
        controllers: Sequence[str] = (),
        controller_rate: float | None = None,
    ) -> None:
        """Write the files of `dynid excite`, also the run for csv, ros2, urscript, krl or rapid, in [Hz]."""
        from dynid.excitation.files import save_motion

        save_motion(self, folder, controllers, controller_rate)


def excite(
    robot: str | os.PathLike[str] | Mechanism,
    settings: ExciteSettings | Mapping[str, Any] | None = None,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Excitation | CaseDesign:
    """The best of many optimised motions of a robot within its limits.

    An `Excitation`; a cable robot of model `internal` gets a set of free motions, another `CaseDesign`.

    Args:
        robot: Built-in name, file or Mechanism.
        settings: What kind of motion; also as a mapping. `save` of the result writes the files.
        journal: File of finished starts; an interrupted run continues from there.
        jobs: Number of processes.
        cluster: Address of a Dask scheduler instead.
        progress: Called with the stage and the fraction completed, 0 to 1.

    Raises:
        InputError: A limit cannot be met, or the robot description is incomplete.
    """
    asked = read(ExciteSettings, plain_entry({} if settings is None else settings)).without_files()
    mechanism = load_robot(robot)
    prepare_kernels(mechanism)
    motions = case_motions(mechanism)
    if not isinstance(robot, Mechanism):
        # Workers of a cluster have folders of their own.
        robot = os.fspath(robot) if cluster is None else reference(mechanism)
    elif jobs > 1 or cluster or journal:
        text = "several jobs and a journal need a robot given by a file"
        raise InputError(text, remedy="name the robot's file")
    search = excite_series if motions is None else motions.search
    return search(robot, asked, journal=journal, jobs=jobs, cluster=cluster, progress=progress)


def excite_series(
    robot: str | Mechanism,
    settings: ExciteSettings | None = None,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """The best motion of a robot with motors; arguments as for `excite`."""
    with single_threaded_blas():
        if progress is not None:
            progress("limits of the robot", 0.0)
        inputs, notices = plan_inputs(robot, settings or ExciteSettings())

        def searched(inputs: PlanInputs) -> Excitation:
            return _searched(inputs, notices, journal, jobs=jobs, cluster=cluster, progress=progress)

        try:
            return searched(inputs)
        except InputError as refusal:
            of_journal = journal is not None and refusal.file == str(journal)
            given = of_journal or inputs.settings.floor is not None
            floor = None if given else assumed_floor(inputs)
            if floor is None:
                raise
            # No motion is refused for a floor that nobody gave; without it, the refusal is for other reasons.
            try:
                found = searched(replace(inputs, settings=inputs.settings.changed(floor="none")))
            except InputError:
                raise refusal from None
            said = tuple(one for one in found.notices if one.code != "floor-unchecked")
            dropped = notice(
                "floor-unchecked", why=f"no motion above an assumed floor at {floor:g} m keeps all limits"
            )
            return replace(found, settings=inputs.settings, notices=(*said, dropped))


def _searched(
    inputs: PlanInputs,
    notices: tuple[Notice, ...],
    journal: Path | None,
    **how: Any,
) -> Excitation:
    """The best motion of all starts."""
    plan = make_plan(inputs)
    check_home(plan, inputs.settings.home)
    book = Journal(journal, _asked(inputs, plan))
    count, starter = inputs.settings.starts, plan.starter
    run_starts(make_starter, (inputs,), count, book, starter=starter, then=starter.promising, **how)
    with book.without_result():
        return _finished(plan, inputs, starter.results(book.done), notices)


def _asked(inputs: PlanInputs, plan: Plan) -> dict[str, Any]:
    """Identifies an optimisation: only the same one may continue from a journal."""
    file = plan.mechanism.file
    capsules = [  # also those of meshes, which may have changed
        (body, one.start.tolist(), one.end.tolist(), one.radius)
        for body, several in plan.path.mechanism.capsules.items()
        for one in several
    ]
    text = repr((file and Path(file).read_bytes(), inputs.chi, inputs.known, capsules, plan.check.floor))
    settings = {key: value for key, value in inputs.settings.of_search.items() if key != "starts"}
    return {
        "robot": inputs.robot.name if isinstance(inputs.robot, Mechanism) else inputs.robot,
        "inputs": hashlib.sha256(text.encode()).hexdigest(),
        "noise": list(inputs.noise),
        **settings,
        "starts": inputs.settings.starts,
        "dynid": version_of(),
    }


def _finished(
    plan: Plan, inputs: PlanInputs, starts: tuple[Start, ...], notices: tuple[Notice, ...]
) -> Excitation:
    """The best start, with limits also checked between samples."""
    sign = -1.0 if plan.problem.criterion.larger_is_better else 1.0
    kept = [start for start in starts if np.isfinite(start.value)]
    if not kept:
        worst = min(starts, key=lambda start: start.worst)
        raise InputError(
            f"no motion of {inputs.settings.period:g} s satisfies all limits: the best of {len(starts)}"
            f" starts exceeds the limit on {worst.missed} by {100 * worst.worst:.3g} %",
            file=plan.mechanism.file,
            place="limits",
            remedy="widen this limit, or give the motion more time (--period)",
        )
    best = min(kept, key=lambda start: sign * start.value)
    z = np.array(best.z)
    x = plan.problem.blocks.coefficients(z)
    fine = fine_motion(plan.path, plan.family, x, len(plan.problem.t), plan.exact)
    uses = linear_uses(plan.family, plan.box, x) + ([] if fine is None else soft_uses(plan.exact, fine))
    missed = unkept_limits(plan.mechanism, uses)
    if inputs.chi is None:  # already reported
        missed = [label for label in missed if not label.endswith(".tau")]
    if missed:
        notices = (*notices, notice("limits-unused", names=", ".join(missed)))
    if plan.mechanism.is_closed:
        notices = (*notices, *narrowed_limits(plan.mechanism, plan.path.names))
    notices = (*notices, *plan.check.notices())
    rate = inputs.rate
    t = np.arange(round(plan.family.period * rate) + 1) / rate
    states = plan.states(z, t)
    if states is None:
        raise InputError("the motion found violates the loop closure", remedy="use a higher --rate")
    q, dq, ddq = measured_motion(plan.mechanism, *plan.robot_motion(states))
    run, more = run_of(plan, x, inputs.settings.home, inputs.settings.repeats, rate)
    moved = plan.family.motion(x)
    led = plan.path.mechanism
    motion = ClosedMotion(led, plan.path.names, moved) if led.is_closed else moved
    return Excitation(
        robot=plan.mechanism.name,
        settings=inputs.settings,
        names=plan.mechanism.measured_positions,
        moved=plan.path.names,
        motion=motion,
        coefficients=x,
        t=t,
        q=q,
        dq=dq,
        ddq=ddq,
        criterion=best.value,
        larger_is_better=plan.problem.criterion.larger_is_better,
        starts=starts,
        best=best.number,
        limits=tuple(uses),
        before=_promised(plan, inputs, plan.starter.best_random(_RANDOM)),
        after=_promised(plan, inputs, z),
        base_names=plan.base.names,
        base_units=plan.base.units,
        plan=plan,
        plan_noise=inputs.noise,
        rate=inputs.rate,
        assumed=inputs.assumed,
        identified=inputs.identified,
        run=run,
        notices=(*notices, *more),
    )


def _promised(plan: Plan, inputs: PlanInputs, z: Float[Array, "v"]) -> Promise:
    """Sigma and spectrum of a motion for the identification model of the robot."""
    settings = inputs.settings
    t = np.arange(_PROMISED) / _PROMISED * settings.period
    states = plan.states(z, t)
    if states is None:
        none = np.full(len(plan.base.indices), np.inf)
        return Promise(none, np.zeros_like(none), np.inf, np.inf)
    return promise(
        plan.path,
        states,
        plan.base,
        np.array(inputs.noise),
        inputs.rate * settings.period * settings.repeats / _PROMISED,
        model=plan.mechanism.model,
        mounted=settings.payloads,
        known=None if inputs.known is None else np.array(inputs.known),
    )
