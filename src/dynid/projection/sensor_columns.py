"""Columns of a force sensor's equations: six rows per sample in the axes of the sensor.

    s W(omega, dV) chi_tool + bias + J (x - x0) = measured,        J = d(s W chi0)/dx at x0

x are the unknown angles (mounting, direction of gravity), linearised at x0 (`ForceSensor.place`); the
parameters of their columns are corrections x - x0. Without `load_parameters` chi0, J is zero (no tool).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Inexact, Int

from dynid.common.arrays import Array
from dynid.mechanism.force_sensor import COMPONENTS, run_bias
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.sensor_motion import SensorMotion
from dynid.regressor.layout import ABSENT, Layout
from dynid.regressor.wrench import wrench_regressor

_TINY = 1e-30  # of a complex step: exact to rounding


class SensorColumns:
    """Columns of the sensor's equations for any motion of its frame.

    Args:
        mechanism: With a force sensor.
        parameters: Standard parameters, one per column.
        rows: Which of the six components are requested.
        mounted: Payloads on the tool.
        load_parameters: Values of the bodies that the angles rotate, shape (p,), SI; None: no body.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        rows: Sequence[int],
        mounted: Sequence[str] = (),
        load_parameters: Float[Array, "p"] | None = None,
    ) -> None:
        sensor = mechanism.force_sensor
        if sensor is None:
            raise TypeError("a robot without force sensor has no such rows")
        self.sensor, self.gravity, self.rows = sensor, np.asarray(mechanism.gravity, float), list(rows)
        index = {parameter.name: i for i, parameter in enumerate(parameters)}
        self._maps = _carried(mechanism, index, mounted)
        chi = np.zeros(len(parameters)) if load_parameters is None else np.asarray(load_parameters, float)
        self._ten = sum((T @ _picked(chi, columns) for columns, T in self._maps), np.zeros(10))
        self._angles = [index[name] for name in sensor.angles]
        self.x = sensor.place()
        self._constant = [index.get(f"Off_{name}", ABSENT) for name in COMPONENTS]
        self._runs = [[index.get(run_bias(name, run), ABSENT) for name in COMPONENTS] for run in sensor.runs]
        self.layout = self._layout()

    def _layout(self) -> Layout:
        """Entries of a row: the carried bodies', the angles', its biases, Y."""
        shared = [c for columns, _ in self._maps for c in columns] + self._angles
        columns: list[int] = []
        start = [0]
        for row in self.rows:
            columns += [*shared, self._constant[row], *(run[row] for run in self._runs), ABSENT]
            start.append(len(columns))
        return Layout(np.array(start), np.array(columns))

    def wrench(self, motion: SensorMotion, x: Inexact[Array, "a"]) -> Inexact[Array, "n 6 10"]:
        """Matrix s W for angles x, over ten parameters in the axes of the sensor as mounted."""
        sensor = self.sensor
        dV = motion.dV.astype(np.result_type(x, float))
        if sensor.gravity != "known":
            change = self.gravity - sensor.tilted(x, self.gravity)
            dV[:, :3] += np.einsum("nji,j->ni", motion.R, change)
        Q = sensor.mounted(x)
        omega = (motion.omega @ Q)[:, None]
        dV = np.concatenate([dV[:, :3] @ Q, dV[:, 3:] @ Q], axis=1)[:, None]
        return np.asarray(sensor.factor * wrench_regressor(omega, dV)[:, 0])

    def loaded(self, motion: SensorMotion) -> Float[Array, "n 6"]:
        """Sensor reading predicted from the given parameter values, without bias, in [N, N m]."""
        return np.asarray(self.wrench(motion, self.x) @ self._ten)

    def slopes(self, motion: SensorMotion) -> Float[Array, "n 6 a"]:
        """J: derivative of the measured wrench with respect to each angle, in [N/rad, N m/rad]."""
        J = np.zeros((len(motion.omega), 6, len(self.x)))
        for k in range(len(self.x)):
            x = self.x.astype(complex)
            x[k] += 1j * _TINY
            J[:, :, k] = (self.wrench(motion, x) @ self._ten).imag / _TINY
        return J

    def packed(
        self, motion: SensorMotion, measured: Float[Array, "n 6"], run: Int[Array, "n"]
    ) -> Float[Array, "e n"]:
        """Entries of all rows, shape (e, n).

        Args:
            measured: As logged, shape (n, 6), in [N, N m].
            run: Which bias of the runs each sample has; -1: their mean.
        """
        n = len(measured)
        W, J = self.wrench(motion, self.x), self.slopes(motion)
        shared = np.concatenate([*(W @ T for _, T in self._maps), J], axis=2)
        share = np.zeros((n, len(self._runs)))
        if self._runs:
            share[run < 0] = 1.0 / len(self._runs)
            share[np.flatnonzero(run >= 0), run[run >= 0]] = 1.0
        width = self.layout.start[1]
        out = np.empty((len(self.rows), width, n))
        for k, row in enumerate(self.rows):
            s = shared.shape[2]
            out[k, :s] = shared[:, row].T
            out[k, s] = 1.0
            out[k, s + 1 : -1] = share.T
            out[k, -1] = measured[:, row]
        return out.reshape(-1, n)


def _picked(chi: Float[Array, "p"], columns: Sequence[int]) -> Float[Array, "10"]:
    return np.array([0.0 if c == ABSENT else chi[c] for c in columns])


def _carried(
    mechanism: Mechanism, index: dict[str, int], mounted: Sequence[str]
) -> list[tuple[list[int], Float[Array, "10 10"]]]:
    """Columns of the tool and of mounted payloads, and the map of their ten to those in sensor axes."""
    tool = mechanism.force_sensor.tool if mechanism.force_sensor is not None else ""
    carried = [(tool, np.eye(10))]
    for name in mounted:
        frame = mechanism.payloads[name].frame
        carried.append((name, np.column_stack([in_parent_frame(e, frame.R, frame.p) for e in np.eye(10)])))
    return [([index.get(f"{s}_{name}", ABSENT) for s in SYMBOLS], T) for name, T in carried]
