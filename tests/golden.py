"""Guard of a refactoring: every kind of identification, run as a user does, compared with a stored run.

    python -m tests.golden inputs FOLDER          logs and experiment files, once
    python -m tests.golden write FOLDER FILE      run everything and store the results
    python -m tests.golden compare FOLDER FILE    run everything again and list what differs

On one machine a pure move changes nothing; reordered sums change values by parts in 1e12 of their sigma.
Another CPU rounds differently, so the stored numbers stay on the machine that wrote them.
"""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dynid.cli import main
from dynid.mechanism.force_sensor import COMPONENTS
from dynid.simulation.files import log_columns, write_columns

ESTIMATORS = ("ols", "wls", "robust", "tls", "gtls", "iv", "consistent", "recursive")
DEMOS = [
    "serial6",
    "puma560",
    "ur5",
    "panda",
    "scara",
    "dualv",
    "orthoglide",
    "evra",
    "fivebar",
    "rrr3",
    "delta",
    "stewart",
    "palletiser",
    "cable3",
    "cable4",
    "cable8",
]
CLOSED = ("dualv", "orthoglide", "fivebar", "stewart", "palletiser")
REAL = [
    "cdpr_grab4",
    "cdpr_grab4_paper",
    "kuka_kr300",
    "panda_gaz",
    "staubli_tx40",
    "tiago",
    "unitree_go2",
    "ur10_unisa",
]
BALL = (
    "{body: link6, known: {M: 2.5, com: [0.1, 0, 0.05], XX: 0.02, YY: 0.02, ZZ: 0.02, XY: 0, XZ: 0, YZ: 0}}"
)
SENSOR = "{body: link_7, xyz: [0, 0, 0.107], tool: gripper, mounting: angle}"
RTOL = 1e-12


def dynid(*arguments: str) -> int:
    """Exit code of a command; a traceback is raised."""
    done = CliRunner().invoke(main, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code


def write_inputs(folder: Path) -> None:
    """Simulated logs, and an experiment file for every case beyond a demo."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for name in ("ur5", "scara", "puma560", "cable8", "evra", *CLOSED):
        for seed in (1, 2):
            assert (
                dynid("simulate", name, "--seed", str(seed), "--duration", "6", "--out", f"{name}{seed}.csv")
                == 0
            )
    assert dynid("simulate", "serial6", "--table", "--out", "table.csv") == 0
    assert dynid("simulate", "cable4", "--out", "cable4.csv") == 0
    assert dynid("simulate", "dualv", "--seed", "3", "--payload", "payload", "--out", "dualv_loaded.csv") == 0
    from examples.sensor_panda import simulate

    recorded = log_columns(simulate())
    names = {f"tau_{k + 1}": name for k, name in enumerate(COMPONENTS)}
    write_columns({names.get(key, key): x for key, x in recorded.items()}, folder / "wrist.csv")
    cases: dict[str, str] = {}
    for estimator in ESTIMATORS:
        cases[f"ur5_{estimator}"] = (
            f"robot: ur5\nlogs: [ur51.csv]\nvalidate: [ur52.csv]\nestimator: {estimator}\n"
        )
    for name in (*CLOSED, "evra"):
        for model in ("inverse", "power", "energy"):
            cases[f"{name}_{model}"] = (
                f"robot: {name}\nmodel: {model}\nlogs: [{name}1.csv]\nvalidate: [{name}2.csv]\n"
            )
    cases |= {
        "dualv_consistent": "robot: dualv\nlogs: [dualv1.csv]\nestimator: consistent\n",
        "cable8_inverse": "robot: cable8\nlogs: [cable81.csv]\nvalidate: [cable82.csv]\n",
        "table": "robot: serial6\nmodel: wrench\nlogs: [table.csv]\n",
        "sensor": f"robot: panda\nlogs: [wrist.csv]\nforce_sensor: {SENSOR}\n",
        "payload": "robot: dualv\nlogs: [dualv1.csv, {file: dualv_loaded.csv, payload: payload}]\n",
        "friction": "robot: puma560\nlogs: [puma5601.csv]\nvalidate: [puma5602.csv]\n"
        "drive: [Ia, Fv, Fs, Off, Fk, Fl, Fr]\n",
        "essential": "robot: puma560\nlogs: [puma5601.csv]\nessential: {ratio: 10}\nstandard: true\n"
        "cross_validate: 3\n",
        "ties": "robot: dualv\nlogs: [dualv1.csv]\nties: [proximals]\n",
        "gains": "robot: dualv\nlogs: [dualv1.csv, dualv2.csv, {file: dualv_loaded.csv, payload: payload}]\n"
        "payloads: {payload: {body: platform, known: {M: 5.37, com: [0.012, -0.007, 0.05]}}}\ngains: all\n",
        "total_mass": "robot: scara\nlogs: [scara1.csv, scara2.csv]\ngains: {total_mass: 20}\n",
        "refine": "robot: scara\nlogs: [scara1.csv]\nrefine: true\n",
        "lengths": "robot: cable4\nlogs: [cable4.csv]\ninternal: {lengths: refine}\n",
    }
    for name, text in cases.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def run(folder: Path) -> dict[str, Any]:
    """Everything that a reader of the results sees, by case; provenance aside."""
    os.chdir(folder)
    jobs = {f"demo {name}": ("demo", name) for name in DEMOS}
    jobs |= {file.stem: ("identify", file.name) for file in sorted(folder.glob("*.yaml"))}
    examples = Path(__file__).parents[1] / "examples" / "real"
    jobs |= {f"real {name}": ("identify", str(examples / f"{name}.yaml")) for name in REAL}
    found: dict[str, Any] = {}
    for name, command in jobs.items():
        out = folder / "out" / name.replace(" ", "_")
        code = dynid(*command, "--out", str(out))
        file = out / "result.json"
        result = json.loads(file.read_text(encoding="utf-8")) if file.exists() and code in (0, 3) else {}
        result.pop("provenance", None)
        found[name] = {"exit": code, **result}
        print(f"{name}: exit {code}, {len(result.get('parameters', ()))} parameters", flush=True)
    return found


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Places where two results differ: numbers beyond RTOL, codes of warnings, anything else but prose."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [
            key for key in {**before, **after} if key not in ("text", "remedy", "words", "reason", "severity")
        ]
        return [
            line for key in keys for line in differences(before.get(key), after.get(key), f"{place}/{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{place}[{i}]")]
    numbers = isinstance(before, float) and isinstance(after, float | int)
    if numbers and math.isclose(before, after, rel_tol=RTOL, abs_tol=1e-300):
        return []
    if before == after or "/choices/" in place:
        return []
    return [f"{place}: {str(before)[:90]} -> {str(after)[:90]}"]


def run_command(action: str, folder: str, file: str = "") -> int:
    """Do what the command line asks."""
    place = Path(folder).resolve()
    stored = Path(file).resolve()
    if action == "inputs":
        write_inputs(place)
        return 0
    found = json.loads(json.dumps(run(place)))
    if action == "write":
        stored.write_text(json.dumps(found), encoding="utf-8")
        return 0
    lines = differences(json.loads(stored.read_text(encoding="utf-8")), found)
    print("\n".join(lines[:200]) or "nothing differs")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(run_command(*sys.argv[1:]))
