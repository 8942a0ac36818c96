"""Time per call of generated C code, beside Pinocchio's `rnea` of the same arm.

`python benchmarks/controller_code.py [--rounds 5]`. Compiled with `cc -O2`, timed by a loop in C over states
of a trajectory at 1 kHz (closed robots: warm start). `rnea` is called from Python, as the wheel has no
headers; the time of the same call for a model without joints is subtracted. CPU time of one thread, best of
the rounds: the machine may be shared, so compare only figures of one run.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from dynid.base.structural import structural_base
from dynid.excitation.random_motion import random_motion
from dynid.exporters.code import export_c
from dynid.exporters.code.compiled import compiler
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.projection.model import MODELS
from dynid.robots.demo_file import demo_file, read_demo
from dynid.statistics.estimate import Estimate, Fit, ParameterEstimate

ROBOTS = ("serial6", "ur5", "dualv", "evra", "cable8")
STATES, CALLS = 1000, 200
TIMER = """
#include "{n}.h"
#include <stdio.h>
#include <time.h>

static double state[{states}][3][{N}_MEASURED];

int main(int argc, char **argv)
{{
    double tau[{N}_ACTUATORS], sum = 0.0, least = 1.0e9;
    FILE *in = fopen(argv[1], "rb");
    int round, i;
{declare}
    (void)argc;
    if (in == NULL || fread(state, sizeof state, 1, in) != 1) {{
        return 1;
    }}
    for (round = 0; round < {calls}; ++round) {{
        const clock_t begin = clock();
        double seconds;

        for (i = 0; i < {states}; ++i) {{
            {call}
            sum += tau[0];
        }}
        seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        least = (seconds < least) ? seconds : least;
{restart}
    }}
    printf("%.17g %.17g\\n", 1.0e9 * least / {states}, sum);
    return 0;
}}
"""


def exact(robot: Mechanism, name: str) -> Estimate:
    """An estimate that knows the base parameters of the simulated robot."""
    truth = read_demo(demo_file(name), robot).truth
    robot = variant(robot)
    parameters, model = parameter_table(robot), MODELS["inverse"]
    rows = None if robot.is_closed else model.directions(robot)
    base = structural_base(robot, model, parameters, rows)
    values = base.G @ np.array([truth[p.name] for p in parameters])
    known = zip(base.names, base.units, values.tolist(), strict=True)
    found = tuple(ParameterEstimate(*one, 0.0, None, None) for one in known)
    fit = Fit(1, len(found), len(found), 1e9, 1.0, 1.0, 0.0, 0.0)
    return Estimate(name, "inverse", "ols", found, (), fit, np.zeros((len(found), len(found))))


def states_of(robot: Mechanism) -> np.ndarray:
    """Positions and derivatives along one second, there and back: shape (n, 3, m)."""
    t = np.arange(STATES) / 1000.0
    m = len(robot.measured_positions)
    if robot.cables:  # a pose: translation by sines, no rotation
        q, dq, ddq = (np.zeros((STATES, m)) for _ in range(3))
        for i, (w, size) in enumerate(zip((6.0, 7.0, 8.0), (0.1, 0.12, 0.08), strict=True)):
            q[:, i], dq[:, i], ddq[:, i] = (
                size * np.sin(w * t),
                size * w * np.cos(w * t),
                -size * w * w * np.sin(w * t),
            )
        q[:, 3] = 1.0
    else:
        motion = random_motion(robot, 7, harmonics=5, frequency=0.3, draws=1)
        q, dq, ddq = motion.q(t), motion.dq(t), motion.ddq(t)
    return np.stack([q, dq, ddq], axis=1)


def nanoseconds(name: str, rounds: int) -> float:
    """Of one call of the inverse dynamics."""
    robot = load_robot(name)
    states = states_of(robot)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        files = export_c(exact(robot, name), robot, folder).files
        warm = f"{name}_state" in files[1].read_text()
        states.tofile(folder / "states.bin")
        (folder / "timer.c").write_text(
            TIMER.format(
                n=name,
                N=name.upper(),
                states=STATES,
                calls=CALLS,
                declare=f"    {name}_state now;\n\n    {name}_start(&now);" if warm else "",
                call=(
                    f"(void){name}_inverse_dynamics_warm(&now, state[i][0], state[i][1], state[i][2], tau);"
                    if warm
                    else f"{name}_inverse_dynamics(state[i][0], state[i][1], state[i][2], tau);"
                ),
                restart=f"        (void){name}_track(&now, state[0][0]);" if warm else "",
            )
        )
        command = [str(compiler()), "-std=c99", "-O2", str(files[0]), str(folder / "timer.c")]
        subprocess.run([*command, "-o", str(folder / "timer"), "-lm"], check=True)
        run = [str(folder / "timer"), str(folder / "states.bin")]
        shown = [
            subprocess.run(run, check=True, capture_output=True, text=True).stdout for _ in range(rounds)
        ]
    return min(float(one.split()[0]) for one in shown)


def rnea_nanoseconds(rounds: int) -> float | None:
    """Of one call of Pinocchio's rnea for ur5, without the overhead of the call."""
    try:
        import pinocchio
    except ImportError:
        return None
    robot = load_robot("ur5")
    states = states_of(robot)
    full = pinocchio.buildModelFromUrdf(str(Path(robot.sources[0])))
    empty = pinocchio.Model()
    times = {}
    for model in (full, empty):
        data = model.createData()
        given = [tuple(np.array(x[: model.nq]) for x in one) for one in states]
        rnea, least = pinocchio.rnea, float("inf")
        for _ in range(20 * rounds):
            begin = time.process_time()
            for q, dq, ddq in given:
                rnea(model, data, q, dq, ddq)
            least = min(least, time.process_time() - begin)
        times[model] = 1e9 * least / len(given)
    return times[full] - times[empty]


def main() -> None:
    """Print one line for each robot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--robots", nargs="*", default=ROBOTS)
    options = parser.parse_args()
    for name in options.robots:
        print(f"{name:8s} {nanoseconds(name, options.rounds):8.0f} ns per call", flush=True)
    rnea = rnea_nanoseconds(options.rounds)
    if rnea is None:
        print("Pinocchio is not installed: rnea is left out")
    else:
        print(f"ur5      {rnea:8.0f} ns per call of Pinocchio's rnea, overhead of the call subtracted")


if __name__ == "__main__":
    main()
