"""Errors of descriptions: is the right hypothesis named first, and nothing on clean logs?

    python benchmarks/description.py [--robots R ...] [--kinds K ...] [--seeds A B] [--out FILE] [--table]

Twelve kinds of error, five robots (`description_cases.py`). Each case simulates a robot, identifies it with
a wrong description and reads the first hypothesis of the result, or the text of the refusal. Cases in FILE
(JSON lines) are not run again. `--table` prints the table of FILE alone.

A log may not contain an error at all, because the parameters absorb it. This is decided without looking at
the answer: the same log without noise is fitted with the wrong description, and `contradiction` is what
remains,

    sum of squares of (Y - W chi) / sigma

sigma: rms residual of each effort of the true robot with noise, times the root of the inflation by the row
filter. A test of level 0.001 that knows the error and needs to find nothing else detects it with the
probability Phi(sqrt(contradiction) - 3.09): below 3.09^2 it misses more than half of such errors.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from description_cases import KINDS, ROBOTS, Setup, clean

from dynid.common.errors import InputError, NoResultError
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import LinearFit, linear_fit
from dynid.motion.plan import MotionPlan
from dynid.pipeline import identify_logs
from dynid.problem import prepare

UNTESTABLE = 3.09**2
# Errors that redundant encoders contradict, without any effort.
ENCODERS = {("dualv", "zero"), ("dualv", "symbol")}


def outcome(robot: str, kind: str, seed: int) -> dict[str, Any] | None:
    """Make the case, identify, and read the first hypothesis; None where the error does not exist."""
    setup = KINDS[kind][1](clean(robot, seed), seed)
    if setup is None:
        return None
    started, found = time.process_time(), {"robot": robot, "kind": kind, "seed": seed}
    try:
        mechanism = setup.mechanism()
        experiment = Experiment(robot=mechanism, auto="off")
        estimate = identify_logs(mechanism, setup.logs, (), experiment)
    except NoResultError as error:
        estimate = error.estimate
        if estimate is None:
            return {**found, "first": f"refused: {error}", "cpu": time.process_time() - started}
    except InputError as error:
        return {**found, "first": f"refused: {error}", "cpu": time.process_time() - started}
    cpu = time.process_time() - started
    tried = getattr(estimate, "hypotheses", ())
    return {
        **found,
        "first": tried[0].name if tried else "",
        "hypotheses": [[one.name, one.residual_percent, one.p] for one in tried[:4]],
        "level": estimate.verdict.level,
        "reasons": [one.code for one in estimate.verdict.reasons],
        "warnings": [one.code for one in estimate.warnings],
        "contradiction": contradiction(robot, kind, seed),
        "cpu": cpu,
    }


def contradiction(robot: str, kind: str, seed: int) -> float | None:
    """Squares left by the wrong description on a log without noise, in units of noise; None: refused."""
    true = _fit(clean(robot, seed))
    sigma = {}
    for name in {group.name for group in true.data.source.groups}:
        groups = [group for group in true.data.source.groups if group.name == name]
        squares = sum(
            float(np.sum((block.Y - block.W @ true.chi[group.columns]) ** 2))
            for group in groups
            for block in group.blocks
        )
        sigma[name] = np.sqrt(groups[0].inflation * squares / sum(group.n_rows for group in groups))
    silent = KINDS[kind][1](clean(robot, seed, noisy=False), seed)
    assert silent is not None  # noqa: S101 (the case exists)
    try:
        fit = _fit(silent, true.problem.plans[0])
    except InputError:
        return None
    rows = []
    for group in fit.data.source.groups:
        for block in group.blocks:
            own, Y = block.R[:, :-1], block.R[:, -1] - block.R[:, :-1] @ fit.chi[group.columns]
            rows.append(np.column_stack([own @ fit.data.S[group.columns], Y]) / sigma[group.name])
    both = np.concatenate(rows)
    scale = np.linalg.norm(both[:, :-1], axis=0)
    W = both[:, :-1] / np.where(scale > 0.0, scale, 1.0)
    move = np.linalg.lstsq(W, both[:, -1], rcond=1e-10)[0]
    return float(np.sum((both[:, -1] - W @ move) ** 2))


def _fit(setup: Setup, plan: MotionPlan | None = None) -> LinearFit:
    """The linear fit, with the filters of another log."""
    mechanism = setup.mechanism()
    experiment = Experiment(robot=mechanism, auto="off")
    plans = None if plan is None else [plan] * len(setup.logs)
    return linear_fit(prepare(mechanism, setup.logs, experiment, plans), experiment)


NOTHING = ("", "as described")
# Warnings that accuse the description.
ACCUSING = frozenset(
    {
        "gravity-off", "zero-offset", "wrong-branch", "loop-misfit", "position-order", "position-unit",
        "friction-missing", "dimension-off", "dimension-unit", "effort-sign", "model-misfit", "payload-label",
        "known-off",
    }
)  # fmt: skip


def visible(case: Mapping[str, Any]) -> bool:
    """Whether the log contains the error: the best possible test would find it."""
    if case["kind"] in ("clean", "turn") or (case["robot"], case["kind"]) in ENCODERS:
        return True
    contradicted = case.get("contradiction")
    return contradicted is None or contradicted > UNTESTABLE


def right(case: Mapping[str, Any]) -> bool:
    """Whether the cause is named first; of a clean log, whether nothing is."""
    words = KINDS[case["kind"]][0]
    if case["first"].startswith("crash"):
        return False
    if not words:
        return case["first"] in NOTHING and not ACCUSING & set(case.get("warnings", ()))
    first = case["first"].lower()
    if first.startswith("refused"):  # what is named as the cause, not the remedy
        causes = r"(?:loops close with:|likely cause:|samples close|the signs of)[^\n]*"
        first = " ".join(re.findall(causes, first))
    if case["kind"] == "turn" and "whole-turns" in case.get("warnings", ()):
        return first in NOTHING  # removed, and named
    return any(word in first for word in words)


def table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Right of all, by kind and robot."""
    yield f"{'':16}" + "".join(f"{robot:>12}" for robot in ROBOTS) + f"{'all':>12}"
    for kind in KINDS:
        row = []
        for robots in (*((one,) for one in ROBOTS), ROBOTS):
            every = [one for one in cases if one["kind"] == kind and one["robot"] in robots]
            own = [right(one) for one in every if visible(one)]
            hidden = f" ({len(every) - len(own)})" if len(every) > len(own) else ""
            row.append(f"{sum(own)}/{len(own)}{hidden}" if every else "-")
        yield f"{kind:16}" + "".join(f"{one:>12}" for one in row)
    wrong = [one for one in cases if one["kind"] != "clean"]
    shown = [one for one in wrong if visible(one)]
    yield f"right first: {sum(map(right, shown))} of {len(shown)} errors that the logs contain"
    yield f"(in brackets: {len(wrong) - len(shown)} errors with a contradiction below {UNTESTABLE:.1f})"


def main() -> None:
    """Run the cases that are not in the file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=list(ROBOTS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10), help="first, and one after the last")
    parser.add_argument("--out", type=Path, default=Path("description.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the table only")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.is_file() else []
    cases = [json.loads(one) for one in lines]
    done = {(one["robot"], one["kind"], one["seed"]) for one in cases}
    wanted = [(r, k, s) for s in range(*given.seeds) for r in given.robots for k in given.kinds]
    for robot, kind, seed in () if given.table else wanted:
        if (robot, kind, seed) in done:
            continue
        try:
            found = outcome(robot, kind, seed)
        except Exception:  # a crash is an outcome too
            found = {
                "robot": robot,
                "kind": kind,
                "seed": seed,
                "first": f"crash: {traceback.format_exc(limit=-2)}",
            }
        if found is None:
            continue
        cases.append(found)
        with given.out.open("a") as stream:
            stream.write(json.dumps(found) + os.linesep)
        mark = "  " if right(found) else "XX"
        tail = f"{found['first'][:150]!r} {found.get('reasons', '')}"
        squares = found.get("contradiction")
        size = "      -" if squares is None else f"{squares:7.4g}"
        print(f"{mark} {robot:11}{kind:15}{seed:4}{found.get('cpu', 0.0):6.1f} s {size} {tail}", flush=True)
    print("\n".join(table(cases)))


if __name__ == "__main__":
    main()
