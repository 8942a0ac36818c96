"""From a Parquet file of 65 814 samples to written results: `dynid identify`, or figaroh's own methods.

`python benchmarks/end_to_end.py --tool dynid|figaroh|figaroh-saved` starts one process and prints its CPU and
wall seconds, imports included. All read the same file (positions and efforts of a UR5 at 1 kHz) and the same
URDF. dynid runs as users call it: settings chosen, residuals and description tested, report written. figaroh
filters and differentiates, decimates and solves; its `save_results` writes the whole regressor as YAML, takes
several times as long and is measured by `figaroh-saved` only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

common = peers.load()
_DECIMATION = 10
_FILTERS = {"nbutter": 4, "f_butter": 5, "med_fil": 5, "f_sample": 1000}


def write(urdf: str, path: Path, n: int) -> None:
    """The log: efforts of the description with friction, rotors and offsets, and noise."""
    import numpy as np
    import pinocchio as pin
    import pyarrow as pa
    import pyarrow.parquet as pq

    model = pin.buildModelFromUrdf(urdf)
    data = model.createData()
    q, v, a = common.trajectory(n, model.nv)
    rng = np.random.default_rng(3)
    tau = np.array([pin.rnea(model, data, q[i], v[i], a[i]) for i in range(n)])
    tau += 2.0 * v + 1.5 * np.sign(v) + 0.3 * a + 0.1 + 0.05 * rng.normal(size=tau.shape)
    q = q + 2e-5 * rng.normal(size=q.shape)
    columns = {"t": 1e-3 * np.arange(n)}
    for name, values in (("q", q), ("tau", tau)):
        columns |= {f"{name}_{j + 1}": values[:, j] for j in range(model.nv)}
    pq.write_table(pa.table(columns), path)


def figaroh(urdf: str, log: str, out: str) -> None:
    """What a user of figaroh writes: read, filter, regressor, decimation, solution; results into `out`."""
    from types import SimpleNamespace

    import numpy as np
    import pinocchio as pin
    import pyarrow.parquet as pq
    from figaroh.identification.base_identification import BaseIdentification
    from figaroh.identification.identification_tools import get_standard_parameters
    from figaroh.identification.parameter import add_standard_additional_parameters
    from figaroh.tools.regressor import build_regressor_basic

    model = pin.buildModelFromUrdf(urdf)
    robot = SimpleNamespace(model=model, data=model.createData())
    nv, joints = model.nv, list(model.names[1:])
    config = {"has_friction": True, "has_actuator_inertia": True, "has_joint_offset": True}
    config |= {"is_joint_torques": True, "is_external_wrench": False, "force_torque": None}
    config |= {"act_idxv": list(range(nv)), "act_idxq": list(range(nv)), "reduction_ratio": [1] * nv}
    config |= {name: [0] * nv for name in ("fv", "fs", "Ia", "off")}
    config |= {"active_joints": joints, "act_Jname": joints, "qr_relative_tolerance": 1e-6}
    config |= {"ratio_essential": 30.0}

    class Job(BaseIdentification):
        def load_param(self, config_file, setting_type="identification"):
            self.identif_config = config

        def load_trajectory_data(self, data_source=None):
            return None

    table = pq.read_table(log)
    q, tau = (
        np.stack([table[f"{name}_{j + 1}"].to_numpy() for j in range(nv)], axis=1) for name in ("q", "tau")
    )
    job = Job(robot, None)
    job.raw_data = {"timestamps": table["t"].to_numpy(), "positions": q, "torques": tau}
    job.filter_kinematics_data({"filter_params": _FILTERS, "differentiation_method": "gradient"})
    job.process_torque_data()
    done = job.processed_data
    job.num_samples = len(done["positions"])
    states = done["positions"], done["velocities"], done["accelerations"]
    job.dynamic_regressor = build_regressor_basic(robot, *states, config)
    job.standard_parameter = get_standard_parameters(model, config)
    job.standard_parameter.update(add_standard_additional_parameters(model, config))
    job.print_quality_report = lambda: None
    job.solve(decimate=True, decimation_factor=_DECIMATION, plotting=False)
    if out:
        job.save_results(out)


def measured(tool: str, urdf: str, log: Path, out: Path) -> tuple[float, float]:
    """CPU and wall seconds of one process, from its start to its end."""
    if tool == "dynid":
        command = [sys.executable, "-m", "dynid", "identify", "--robot", urdf, "--log", str(log)]
        command += ["--out", str(out)]
    else:
        saved = str(out) if tool == "figaroh-saved" else ""
        command = [sys.executable, __file__, "--figaroh", urdf, str(log), saved]
    begin = time.perf_counter()
    # As in any installation: byte code is kept. Without it each run would compile all files again.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{tool} ended with exit code {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", choices=("dynid", "figaroh", "figaroh-saved"), default="dynid")
    parser.add_argument("--robot", default="ur5")
    parser.add_argument("--n", type=int, default=common.N_DEFAULT)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--figaroh", nargs=3, metavar=("URDF", "LOG", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.figaroh:
        figaroh(*options.figaroh)
        return
    with tempfile.TemporaryDirectory() as place:
        urdf, log = common.urdf(options.robot)[0], Path(place) / "log.parquet"
        write(urdf, log, options.n)
        runs = [measured(options.tool, urdf, log, Path(place) / f"out{k}") for k in range(options.repeat)]
    cpu, wall = (min(values) for values in zip(*runs, strict=True))
    common.emit(
        bench="end_to_end",
        tool=options.tool,
        robot=options.robot,
        n=options.n,
        seconds=cpu,
        wall_seconds=wall,
    )


if __name__ == "__main__":
    main()
