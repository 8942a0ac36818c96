"""Estimate: the result of an identification, with the names of `result.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float, read_only
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.estimator.solution import History
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.by_name import ByName
from dynid.statistics.correlation import Correlation, NamedMatrix
from dynid.statistics.estimate_parts import (
    NOT_JUDGED,
    Candidate,
    Description,
    DescriptionTest,
    LogError,
    Signals,
    Verdict,
)
from dynid.statistics.uncertainty import student_t

if TYPE_CHECKING:
    from dynid.prediction.predict import EffortPrediction
    from dynid.report.summary import Plots, Summary

_POOR_FIT = 50.0  # percent of the measured norm: half of it unexplained
NOT_TESTED = "not tested"  # choice: faults that these logs cannot show


@dataclass(frozen=True)
class ParameterEstimate:
    """One base parameter. A removed one stays listed: essential False, value 0, sigma None.

    Attributes:
        dof: Degrees of freedom of sigma: how well it is known itself.
        sigma_by: The method behind sigma (`cluster`, `leave-one-out`, `classical`, ...).
    """

    name: str
    unit: str
    value: float
    sigma: float | None
    sigma_rel_percent: float | None
    ci95: tuple[float, float] | None
    essential: bool = True
    grouping: str = ""
    prior: float | None = None
    dof: float | None = None
    sigma_by: str = ""

    def __repr__(self) -> str:
        """Value, unit and interval; the fields have the rest."""
        bounds = "no interval" if self.ci95 is None else "95 %: {:.6g} to {:.6g}".format(*self.ci95)
        return f"ParameterEstimate({self.name} = {self.value:.6g} {self.unit}, {bounds})"

    def __float__(self) -> float:
        """The value, SI."""
        return self.value

    def __format__(self, spec: str) -> str:
        """The value as a number of this format; without one, as `repr`."""
        return format(self.value, spec) if spec else repr(self)

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Confidence interval, SI; None without a sigma. At other levels as wide as Student's t has it."""
        if not 0.5 <= level < 1.0:
            raise InputError(
                f"a level of {level:g} is not between 0.5 and 1",
                remedy="give the probability that an interval holds the true value, e.g. 0.95, not 0.05",
            )
        if self.ci95 is None or self.sigma is None or level == 0.95:
            return self.ci95
        dof = np.inf if self.dof is None else self.dof
        times = float(student_t(dof, level) / student_t(dof, 0.95))
        low, high = self.ci95
        return self.value - times * (self.value - low), self.value + times * (high - self.value)


@dataclass(frozen=True)
class GroupFit:
    """Fit of one group of rows: rms in `unit`, residual in percent of its measured norm; NaN: no effort."""

    name: str
    rms: float
    residual_percent: float
    r2: float
    unit: str = ""
    n_rows: int = 0


@dataclass(frozen=True)
class RunFit:
    """One run of a log without efforts: how far its rows are from zero.

    Attributes:
        run: Number of the run in its log, from 1.
        t: Its first sample, in [s].
        sigma_perp: sqrt(rho^T rho / n) over n samples, all rows of a sample together, per unit mass.
        residual_percent: 100 |rho| / |mass column|.
        n_samples: Samples behind the row filter.
        position_rms, angle_rms: Error of a simulation from the run's beginning, in [m] and [rad]; or None.
        prior_position_rms, prior_angle_rms: The same with the prior parameters.
        motion_position_rms, motion_angle_rms: How far the run itself moves about its mean, in [m] and [rad].
    """

    run: int
    t: float
    sigma_perp: float
    residual_percent: float
    n_samples: int
    position_rms: float | None = None
    angle_rms: float | None = None
    prior_position_rms: float | None = None
    prior_angle_rms: float | None = None
    motion_position_rms: float | None = None
    motion_angle_rms: float | None = None


@dataclass(frozen=True)
class Agreement:
    """How well the rows are explained.

    Attributes:
        sigma_rho: Deviation of a row; weighted rows: dimensionless.
        condition, condition_scaled: Of W as solved, raw and with unit columns.
        cost_C: (s_1 + 1) / s_(p-1) over the singular values of W with the reference column, SI; homogeneous
            systems only.
        sigma_W: Deviation of an entry of W by plain total least squares; homogeneous systems only.
    """

    n_rows: int
    n_parameters: int
    rank: int
    rank_gap: float
    condition: float
    condition_scaled: float
    sigma_rho: float
    residual_percent: float
    groups: tuple[GroupFit, ...] = ()
    cost_C: float | None = None
    sigma_W: float | None = None

    @property
    def poor(self) -> bool:
        """Whether half of what was measured is unexplained."""
        return not self.residual_percent <= _POOR_FIT

    @property
    def sigma_perp(self) -> float:
        """sqrt(rho^T rho / n) over n samples, all rows of a sample together: as of a run (`RunFit`)."""
        squares, samples = 0.0, 0
        for name in dict.fromkeys(group.name for group in self.groups):
            members = [group for group in self.groups if group.name == name]
            squares += sum(group.rms**2 * group.n_rows for group in members)
            samples = max(samples, sum(group.n_rows for group in members))
        return float(np.sqrt(squares / max(samples, 1)))


@dataclass(frozen=True)
class Validation:
    """Prediction of a log that was not used for the estimate (or was: `independent` False).

    Attributes:
        effort_percent: NaN where the log has no efforts to compare with.
        warnings: What was noticed while the log was read and predicted.
        runs: Where no effort acts, every run on its own.
        error: Model error, as in the verdict.
    """

    log: str
    independent: bool
    residual_percent: float
    effort_percent: float
    groups: tuple[GroupFit, ...] = ()
    warnings: tuple[Notice, ...] = ()
    runs: tuple[RunFit, ...] = ()
    error: LogError = field(default_factory=LogError)

    def __repr__(self) -> str:
        """One line; the fields have the rest."""
        found = f"model error {self.error.percent:.2g} % ({self.error.worst})"
        codes = ", ".join(dict.fromkeys(item.code for item in self.warnings)) or "none"
        return f"Validation({self.log!r}, independent={self.independent}, {found}, warnings: {codes})"


@dataclass(frozen=True)
class ResidualTest:
    """One test: its figure, interval and probability.

    Attributes:
        test: `delay`, `zero`, `dimension`, `gravity`, `mounting`, `speed`, `load`, `gain` or `white`; of
            tables `mass`.
        about: The effort or joint.
        value: Delay [s], zero or dimension [rad] or [m], error of gravity [m/s^2], mounting [rad], gain [1],
            load term [1], mass by the forces along one direction [kg]; speed: explained part of the squares;
            white: correlation of neighbours that the row filter does not explain.
        p_value: Probability of such a value without a fault.
        warned: Whether it is among the warnings.
        note: Tests that cannot be separated from it with this motion, residuals correlated in time.
        explains: Part of the residual squares of the rows concerned, 0 to 1.
        vector: Gravity with which the logs fit, in [m/s^2]; empty: not estimated.
    """

    test: str
    about: str
    value: float
    unit: str
    ci95: tuple[float, float] | None
    p_value: float
    warned: bool
    note: str = ""
    explains: float = 0.0
    vector: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Estimate(ByName):
    """The result of an identification: parameters with honest uncertainty, and where they are from.

    Attributes:
        covariance: Of the parameters with a sigma, in the order listed, SI units.
        shared: Of payloads by difference, covariance of the same parameters with those of the result without
            load, in the order of its own covariance, SI units.
        uncertainty: How sigma was found: method, blocks and their length, runs.
        not_identifiable: Base parameters that these data do not determine -> why.
        invisible: Standard parameters that no motion can show on their own -> what acts instead.
        correlations: The most correlated pairs of parameters, strongest first.
        residual_tests: Tests of the residuals: delay, gain, joint zeros, friction left over, memory.
        choices: Every choice made from the data (filter, decimation, mask ...): name -> text.
        history: Of recursive estimators, the parameters over time; not kept in `result.json`.
        hypotheses: Corrections of the description, the one that explains the logs best first.
        tried: Settings that were left open and how they were chosen, in the order tried.
        truth: True base values where known (simulated logs), by name; shown side by side.
        files: Further files of the result's folder, name -> text.
        verdict: Whether it can be used, and why not.
        mechanism: The robot of the identification; not kept in `result.json`, which names its file.
        drawing: What pages draw besides (`dynid.display`); empty where the logs are not at hand.
        description: Uncertain or unknown dimensions, zeros and gravity; None: taken as exact.
    """

    robot: str
    model: str
    estimator: str
    parameters: tuple[ParameterEstimate, ...]
    not_identifiable: Mapping[str, str]
    fit: Agreement
    covariance: Float[Array, "p p"]
    validation: tuple[Validation, ...] = ()
    warnings: tuple[Notice, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    signals: tuple[Signals, ...] = ()
    truth: Mapping[str, float] | None = None
    standard: tuple[Mapping[str, Any], ...] = ()
    uncertainty: Mapping[str, Any] = field(default_factory=dict)
    correlations: tuple[Correlation, ...] = ()
    invisible: Mapping[str, str] = field(default_factory=dict)
    residual_tests: tuple[ResidualTest, ...] = ()
    tried: tuple[Candidate, ...] = ()
    hypotheses: tuple[DescriptionTest, ...] = ()
    history: History | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    shared: Float[Array, "p u"] | None = None
    verdict: Verdict = NOT_JUDGED
    mechanism: Mechanism | None = None
    drawing: Mapping[str, Any] = field(default_factory=dict)
    description: Description | None = None

    def __post_init__(self) -> None:
        """Matrices of a result cannot be written to."""
        for name in ("covariance", "shared"):
            if (matrix := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(matrix))

    def __repr__(self) -> str:
        """One line: what it is of, and how good; `summary()` shows the rest."""
        errors = [joint.error_percent for joint in self.verdict.joints]
        counts = f"{len(self)} parameters" + (f", model error {max(errors):.2g} %" if errors else "")
        head = f"robot={self.robot!r}, model={self.model!r}, estimator={self.estimator!r}"
        return f"Estimate({head}, verdict={self.verdict.level!r}, {counts}, warnings: {len(self.warnings)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: verdict, warnings, parameters."""
        from dynid.report.html import notebook_html

        return notebook_html(self)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same: all that `result.json` keeps."""
        from dynid.report.json_file import result_document

        if not isinstance(other, Estimate):
            return NotImplemented
        return self is other or result_document(self) == result_document(other)

    def __hash__(self) -> int:
        """Of the names of its parameters and what it is of."""
        return hash((self.robot, self.model, self.estimator, tuple(self)))

    @property
    def params(self) -> dict[str, float]:
        """Values by name, SI; parameters that were removed are zero."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    @property
    def cov(self) -> NamedMatrix:
        """Covariance of the parameters that have a sigma, with their names, SI."""
        return NamedMatrix(tuple(p.name for p in self.parameters if p.sigma is not None), self.covariance)

    def conf_int(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Confidence intervals by name, SI; parameters without a sigma have none.

        Args:
            level: Probability that an interval holds the true value, 0.5 to 1 (not the alpha of statsmodels).
        """
        return {p.name: interval for p in self.parameters if (interval := p.interval(level)) is not None}

    def to_dataframe(self, *, grouping: bool = False) -> Any:
        """Parameters as a pandas data frame: value, sigma, interval, unit; `grouping`: also the sums."""
        from dynid.report.csv_file import parameter_frame

        return parameter_frame(self, grouping)

    def summary(self, *, full: bool = False) -> Summary:
        """Verdict, fit and parameters (`full`: all of them), to print, or as HTML or LaTeX."""
        from dynid.report.summary import Summary

        return Summary(self, full)

    @property
    def plot(self) -> Plots:
        """The plots `friction()`, `efforts()`, `parameters()`, `correlation()`: to show, or to `save`."""
        from dynid.report.summary import Plots

        return Plots(self)

    @cached_property
    def bodies(self) -> tuple[Mapping[str, Any], ...]:
        """Mass [kg] and centre of mass [m] of bodies, as exports have them; None where unknown."""
        from dynid.prediction.bodies import identified_bodies

        return identified_bodies(self)

    def predict(self, trajectory: Any, **options: Any) -> EffortPrediction:
        """Efforts for a smooth trajectory (of a log: `validate`); options as of `predict_efforts`.

        Args:
            trajectory: File, `Log`, data frame or mapping with the columns `t`, `q_1`, ..
        """
        from dynid.prediction.predict import predict_efforts

        return predict_efforts(self, trajectory, **options)

    def validate(
        self, log: Any, robot: Any = None, payloads: Any = None, columns: Any = None
    ) -> tuple[Validation, ...]:
        """Prediction errors on other logs, one entry per log.

        Args:
            log: One or several: files, `Log` objects, data frames or mappings of columns.
            robot: Default: that of the identification.
            payloads: Names, mounted in these logs; empty: none. Default: what every log of the fit carried.
            columns: As of `identify`. Default: those of the identification.
        """
        return self._predicted(log, robot, payloads, columns=columns)[0]

    def _predicted(
        self, log: Any, *options: Any, **more: Any
    ) -> tuple[tuple[Validation, ...], tuple[Signals, ...]]:
        from dynid.problem import several
        from dynid.validation.held_out import validate_result

        return validate_result(self, several(log), *options, **more)

    def save(self, folder: Any) -> None:
        """Write `result.json`, `parameters.csv`, `signals.csv` and `report.html` into a folder."""
        from dynid.report.output import write_results

        write_results(self, folder)

    @classmethod
    def load(cls, path: Any) -> Estimate:
        """The result in a `result.json`, or in its folder, with the efforts in `signals.csv` beside it."""
        from dynid.report.csv_file import read_signals
        from dynid.report.json_file import read_result

        estimate, place = read_result(path), Path(path)
        file = (place if place.is_dir() else place.parent) / "signals.csv"
        return replace(estimate, signals=read_signals(file, {g.name: g.unit for g in estimate.fit.groups}))
