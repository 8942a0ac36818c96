"""Time per call of generated C code beside Pinocchio's `rnea`, and its efforts beside those of Python.

`python benchmarks/controller_code.py [--rounds 5]`. Compiled with `cc -O2`, timed by a loop in C over states
of a trajectory at 1 kHz (closed robots: warm start). `rnea` is timed by the same loop in C++ if a compiler
and the headers of Eigen are there (`pip install cmeel-eigen`, or `--eigen FOLDER`); else it is called from
Python, and the time of the same call for a model without joints is subtracted. CPU time of one thread, best
of the rounds: the machine may be shared, so compare only figures of one run.

`--check` compares instead of timing: 10 000 states, compiled with all warnings as errors and with the
sanitisers for addresses and undefined behaviour, beside `predict_efforts`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.base.structural import structural_base
from dynid.excitation.random_motion import random_motion
from dynid.exporters.code import export_c
from dynid.exporters.code.compiled import compiler
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.logs import log_from_arrays
from dynid.prediction.predict import predict_efforts
from dynid.projection.model import MODELS
from dynid.robots.demo_file import demo_file, read_demo
from dynid.statistics.estimate import Agreement, Estimate, ParameterEstimate

ROBOTS = ("serial6", "ur5", "dualv", "evra", "cable8")
STATES, CALLS = 1000, 200
_SPARE, _MOVES = 500, 1e-5  # states that may be left out; rad/s or m/s
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

CHECK = """
#include "{n}.h"
#include <stdio.h>

int main(int argc, char **argv)
{{
    double state[3][{N}_MEASURED], tau[{N}_ACTUATORS];
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    int open = 0;
{declare}
    (void)argc;
    if ((in == NULL) || (out == NULL)) {{
        return 1;
    }}
    while (fread(state, sizeof state, 1, in) == 1) {{
        {call}
        if (fwrite(tau, sizeof tau, 1, out) != 1) {{
            return 1;
        }}
    }}
    (void)fclose(in);
    (void)fclose(out);
    return open;
}}
"""
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
SANITISED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
RNEA = """
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>
#include <cstdio>
#include <ctime>
#include <vector>

int main(int, char **argv)
{
    pinocchio::Model model;
    JOINTS
    pinocchio::Data data(model);
    std::vector<Eigen::VectorXd> state(3 * STATES, Eigen::VectorXd(model.nv)); /* q, dq, ddq, q, ... */
    FILE *in = std::fopen(argv[1], "rb");
    double least = 1.0e9, sum = 0.0;
    for (auto &one : state) {
        if (in == NULL || std::fread(one.data(), sizeof(double), model.nv, in) != std::size_t(model.nv)) {
            return 1;
        }
    }
    for (int round = 0; round < CALLS; ++round) {
        const std::clock_t begin = std::clock();
        for (int i = 0; i < 3 * STATES; i += 3) {
            sum += pinocchio::rnea(model, data, state[i], state[i + 1], state[i + 2])[0];
        }
        const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
        least = seconds < least ? seconds : least;
    }
    std::printf("%.17g %.17g\\n", 1.0e9 * least / STATES, sum);
}
"""

# As in the CMake files of Pinocchio.
BOOST = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)


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
    fit = Agreement(1, len(found), len(found), 1e9, 1.0, 1.0, 0.0, 0.0)
    return Estimate(name, "inverse", "ols", found, (), fit, np.zeros((len(found), len(found))))


def states_of(robot: Mechanism, n: int = STATES) -> np.ndarray:
    """Positions and derivatives along a motion at 1 kHz: shape (n, 3, m)."""
    t = np.arange(n) / 1000.0
    m = len(robot.measured_positions)
    if robot.cables:  # a pose: translation by sines, no rotation
        q, dq, ddq = (np.zeros((n, m)) for _ in range(3))
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


def program(name: str, template: str, folder: Path, flags: Sequence[str], **more: object) -> Path:
    """The generated code with a main function, compiled in a folder."""
    files = export_c(exact(load_robot(name), name), load_robot(name), folder).files
    warm = f"{name}_state" in files[1].read_text()
    state = "state[i]" if template is TIMER else "state"
    arguments = ", ".join(f"{state}[{k}]" for k in range(3))
    call = f"{name}_inverse_dynamics({arguments}, tau);"
    if warm:
        use = "(void)" if template is TIMER else "open |= "
        call = f"{use}{name}_inverse_dynamics_warm(&now, {arguments}, tau);"
    source = folder / "main.c"
    source.write_text(
        template.format(
            n=name,
            N=name.upper(),
            declare=f"    {name}_state now;\n\n    {name}_start(&now);" if warm else "",
            call=call,
            restart=f"        (void){name}_track(&now, state[0][0]);" if warm else "",
            **more,
        )
    )
    made = folder / "main"
    subprocess.run([str(compiler()), *flags, str(files[0]), str(source), "-o", str(made), "-lm"], check=True)
    return made


def largest_difference(name: str, n: int = 10_000) -> float:
    """Of an effort by sanitised C code and by Python, relative to the largest effort."""
    robot = load_robot(name)
    states = states_of(robot, n + _SPARE)
    # Below 1e-6 rad/s `predict_efforts` takes a joint to be at rest, without dry friction.
    moving = (np.abs(states[:, 1]) > _MOVES).all(axis=1) | bool(robot.cables)
    states = states[moving][:n]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        made = program(name, CHECK, folder, (*STRICT, *SANITISED))
        states.tofile(folder / "states.bin")
        subprocess.run([str(made), str(folder / "states.bin"), str(folder / "tau.bin")], check=True)
        found = np.fromfile(folder / "tau.bin").reshape(n, -1)
    q, dq, ddq = (np.ascontiguousarray(states[:, k]) for k in range(3))
    log = log_from_arrays(robot, np.arange(n) / 1000.0, q, None, dq=dq, ddq=ddq)
    wanted = predict_efforts(exact(robot, name), log, robot=robot).tau
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def nanoseconds(name: str, rounds: int) -> float:
    """Of one call of the inverse dynamics."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        made = program(name, TIMER, folder, ("-std=c99", "-O2"), states=STATES, calls=CALLS)
        states_of(load_robot(name)).tofile(folder / "states.bin")
        run = [str(made), str(folder / "states.bin")]
        shown = [
            subprocess.run(run, check=True, capture_output=True, text=True).stdout for _ in range(rounds)
        ]
    return min(float(one.split()[0]) for one in shown)


def rnea_from_c(rounds: int, eigen: str | None) -> float | None:
    """Of one call of Pinocchio's rnea for ur5, from C++; None where it cannot be compiled."""
    import pinocchio

    prefix = next((p for p in Path(pinocchio.__file__).parents if p.name == "cmeel.prefix"), None)
    if prefix is None or shutil.which("c++") is None:
        return None
    headers = Path(eigen) if eigen else prefix / "include" / "eigen3"
    if not (headers / "Eigen" / "Core").is_file():
        return None
    robot = load_robot("ur5")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        states_of(robot).tofile(folder / "states.bin")
        joints = _joints_in_c(pinocchio.buildModelFromUrdf(str(robot.sources[0])))
        text = RNEA.replace("STATES", str(STATES)).replace("CALLS", str(CALLS)).replace("JOINTS", joints)
        (folder / "rnea.cpp").write_text(text)
        command = ["c++", "-std=c++17", "-O2", "-DNDEBUG", f"-I{prefix / 'include'}", f"-I{headers}"]
        command += [f"-D{one}" for one in BOOST]
        command += [str(folder / "rnea.cpp"), "-o", str(folder / "rnea"), f"-L{prefix / 'lib'}"]
        subprocess.run([*command, "-lpinocchio_default", f"-Wl,-rpath,{prefix / 'lib'}"], check=True)
        run = [str(folder / "rnea"), str(folder / "states.bin")]
        shown = [
            subprocess.run(run, check=True, capture_output=True, text=True).stdout for _ in range(rounds)
        ]
    return min(float(one.split()[0]) for one in shown)


def _joints_in_c(model: Any) -> str:
    """Joints and bodies of a Pinocchio model as C++ (its wheel lacks headers to read a URDF)."""

    def made(kind: str, x: np.ndarray) -> str:
        return f"(Eigen::{kind}() << {', '.join(repr(float(one)) for one in np.ravel(x))}).finished()"

    lines = []
    for i in range(1, model.njoints):
        place, body = model.jointPlacements[i], model.inertias[i]
        frame = f"pinocchio::SE3({made('Matrix3d', place.rotation)}, {made('Vector3d', place.translation)})"
        kind = f"pinocchio::{model.joints[i].shortname()}()"
        lines.append(f'model.addJoint({model.parents[i]}, {kind}, {frame}, "joint{i}");')
        values = f"{float(body.mass)!r}, {made('Vector3d', body.lever)}, {made('Matrix3d', body.inertia)}"
        lines.append(f"model.appendBodyToJoint({i}, pinocchio::Inertia({values}));")
    return "\n    ".join(lines)


def rnea_nanoseconds(rounds: int) -> float:
    """Of one call of Pinocchio's rnea for ur5, from Python, without the overhead of the call."""
    import pinocchio

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--robots", nargs="*", default=ROBOTS)
    parser.add_argument("--check", action="store_true", help="compare the efforts instead")
    parser.add_argument("--eigen", help="folder that contains Eigen/Core")
    options = parser.parse_args()
    if options.check:
        for name in options.robots:
            print(f"{name:8s} {largest_difference(name):.1e} of the largest effort", flush=True)
        return
    for name in options.robots:
        print(f"{name:8s} {nanoseconds(name, options.rounds):8.0f} ns per call", flush=True)
    try:
        how, rnea = "from C++", rnea_from_c(options.rounds, options.eigen)
        if rnea is None:
            how, rnea = "from Python, overhead of the call subtracted", rnea_nanoseconds(options.rounds)
    except ImportError:
        print("Pinocchio is not installed: rnea is left out")
        return
    print(f"ur5      {rnea:8.0f} ns per call of Pinocchio's rnea, {how}")


if __name__ == "__main__":
    main()
