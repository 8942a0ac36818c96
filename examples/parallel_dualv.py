"""DualV in two cases: proximal links with separate parameters, and with equal parameters.

Simulates an unloaded and a loaded run (and another one to predict) of the redundantly actuated robot,
with friction, torque noise and an internal tension, writes them as CSV beside the experiment files
`dualv/case1.yaml` and `dualv/case2.yaml`, and runs

    dynid identify examples/dualv/case1.yaml
    dynid identify examples/dualv/case2.yaml

Then the parameters of the paper's table are printed with their true values.

Run:  python examples/parallel_dualv.py [FOLDER]     FOLDER with the two files; default examples/dualv
"""

from __future__ import annotations

import sys
from pathlib import Path

from dynid import Experiment, built_in_experiment, prepare, read_result, structural_base, write_log
from dynid.cli import main as dynid

LOGS = ("unloaded.csv", "loaded.csv", "other.csv")
PROXIMALS = tuple(f"ZZ_proximal{leg}_R" for leg in (1, 2, 3, 4))
SHOWN = (*PROXIMALS, "ZZ_platform_R", "M_platform_R", "ZZ_payload", "MX_payload", "MY_payload", "M_payload")


def simulate(folder: Path) -> dict[str, float]:
    """Write the three logs; returns the true base parameters, computed as sums of standard parameters."""
    demo = built_in_experiment("dualv")
    for name, log in zip(LOGS, (*demo.logs, demo.validation), strict=True):
        write_log(log, folder / name)
    problem = prepare(demo.mechanism, demo.logs, Experiment(robot="dualv", model="power"))
    base = structural_base(
        problem.mechanism, problem.model, problem.parameters, problem.directions, loads=problem.loads
    )
    relations = zip(base.names, base.relations(), strict=True)
    return {name: sum(f * demo.truth[one] for one, f in relation.items()) for name, relation in relations}


def main() -> None:
    """Simulate, identify both cases, and print the results."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "dualv"
    expected = simulate(folder)
    expected["proximals"] = sum(expected[name] for name in PROXIMALS) / 4
    found = []
    for case in ("case1", "case2"):
        out = folder / "results" / case
        dynid(["identify", str(folder / f"{case}.yaml"), "--out", str(out)], standalone_mode=False)
        found.append({one.name: one for one in read_result(out).parameters})
    print(f"base parameters: case 1 {len(found[0])}, case 2 {len(found[1])}")
    print(f"{'parameter':<18}{'true':>9}{'case 1':>10}{'% sigma':>9}{'case 2':>10}{'% sigma':>9}")
    for name in SHOWN:
        line = f"{name:<18}{expected[name]:>9.4f}"
        for case in found:
            # Tied parameters have the name of the first member.
            one = case.get(name) or case[PROXIMALS[0]]
            line += f"{one.value:>10.4f}{one.sigma_rel_percent:>9.2f}" if one.essential else f"{'-':>19}"
        print(line)


if __name__ == "__main__":
    main()
