"""The program around the Newton steps of closed robots, in C."""

from __future__ import annotations

from dynid.exporters.code.coordinates import Solver
from dynid.exporters.code.printing import wrapped

REACH = 0.1  # of the unit of a coordinate (1 rad; 1 m of a robot of usual size): steps of a long way
PARTS = 64  # maximum number of steps of a long way
STEPS = 8  # maximum number of Newton steps of each
ARRIVED = 1e-15  # squared size of the last step: the error after it is about that size
NEAR = 1e-6  # the same on the way; not required of sensors that contradict each other there


def state_text(name: str, n_q: int) -> list[str]:
    """Declarations of the header."""
    return f"""/*
 * The pose of all joints, owned by the caller: one for each robot and thread.
 *
 * Functions `..._warm` begin at the pose of the last call and keep the new one: two or three Newton steps at
 * the rates of a controller. They return 0, or {name.upper()}_OPEN: no pose near the last one closes the
 * loops with these measured positions. The state is then as before, and the results are those at that pose.
 *
 * Functions without `_warm` begin at the start pose of the description at every call: slower, without state,
 * the same result for the same input, NaN if no pose closes the loops. All functions are reentrant: there are
 * no static variables.
 */
#define {name.upper()}_POSITIONS {n_q}
#define {name.upper()}_OPEN 1

typedef struct {{
    double pose[{name.upper()}_POSITIONS];
}} {name}_state;

/* The start pose of the description. */
void {name}_start({name}_state *state);

/* Move the pose to measured positions; 0, or {name.upper()}_OPEN. */
int {name}_track({name}_state *state, const double q[]);""".splitlines()


def solver_text(name: str, solver: Solver, n_measured: int) -> list[str]:
    """Functions `start` and `track`."""
    N = name.upper()
    start = wrapped([repr(x) for x in solver.start])
    text = f"""static const double start_pose[{N}_POSITIONS] = {{
{chr(10).join(start)}
}};

void {name}_start({name}_state *state)
{{
    int i;

    for (i = 0; i < {N}_POSITIONS; ++i) {{
        state->pose[i] = start_pose[i];
    }}
}}

{_tables(solver, n_measured)}
int {name}_track({name}_state *state, const double q[])
{{
    {name}_state before;
    double from[{N}_MEASURED];
    double aim[{N}_MEASURED];
    double way[{N}_MEASURED];
    double next[{N}_POSITIONS];
    double size[1];
    double distance = 0.0;
    int parts = {PARTS};
    int part;
    int step;
    int i;
    int status = 0;

    before = *state;
    for (i = 0; i < {N}_MEASURED; ++i) {{
        from[i] = state->pose[place[i]];
        aim[i] = q[i];
    }}
{_aims(solver)}    for (i = 0; i < {N}_MEASURED; ++i) {{
        const double gap = fabs(aim[i] - from[i]) / unit_step[i];

        if (!(gap <= distance)) {{
            distance = gap;
        }}
    }}
    if (distance < {REACH * PARTS!r}) {{
        parts = 1 + (int)(distance / {REACH!r});
    }}
    for (part = 1; (part <= parts) && (status == 0); ++part) {{
        const double share = (double)part / (double)parts;
        const double small = (part < parts) ? {NEAR!r} : {ARRIVED!r};

        for (i = 0; i < {N}_MEASURED; ++i) {{
            way[i] = from[i] + share * (aim[i] - from[i]);
        }}
{_way(solver, N)}        size[0] = 1.0;
        for (step = 0; (step < {STEPS}) && !(size[0] < small); ++step) {{
            newton_at(state->pose, way, next, size);
            for (i = 0; i < {N}_POSITIONS; ++i) {{
                state->pose[i] = next[i];
            }}
        }}
        status = ({"" if solver.sets else "(part < parts) || "}(size[0] < small)) ? 0 : {N}_OPEN;
    }}
    if (status != 0) {{
        *state = before;
    }}{_wind(solver)}
    return status;
}}
"""
    return text.splitlines()


def _tables(solver: Solver, n_measured: int) -> str:
    places, units = [0] * n_measured, [1.0] * n_measured
    for c, p, unit in solver.measured:
        places[c], units[c] = p, unit
    for c, p in solver.quaternions:
        places[c : c + 4] = range(p, p + 4)
    lines = ["/* Places of the measured positions in the pose, and their units. */"]
    lines.append(f"static const int place[{n_measured}] = {{{', '.join(map(str, places))}}};")
    lines.append(f"static const double unit_step[{n_measured}] = {{{', '.join(map(repr, units))}}};")
    for label, rows in (("turning", solver.turning), ("quaternion", solver.quaternions)):
        if rows:
            several = ", ".join(str(c) for c, _ in rows)
            lines += [f"static const int {label}[{len(rows)}] = {{{several}}};"]
    if solver.turning:
        lines += [
            "",
            "/* The number of full turns that is nearest to an angle, in rad. */",
            "static double full_turns(double angle)",
            "{",
            "    const double turn = 6.283185307179586;",
            "    const double count = angle / turn;",
            "    const double half = (count < 0.0) ? -0.5 : 0.5;",
            "",
            "    return (fabs(count) < 1.0e6) ? (turn * (double)(int)(count + half)) : 0.0;",
            "}",
        ]
    return "\n".join([*lines, ""])


def _aims(solver: Solver) -> str:
    """Measured positions at the nearest turn, quaternions on the nearer side."""
    text = ""
    if solver.turning:
        text += f"""    for (i = 0; i < {len(solver.turning)}; ++i) {{
        const int c = turning[i];

        aim[c] -= full_turns(aim[c] - from[c]);
    }}
"""
    if solver.quaternions:
        text += f"""    for (i = 0; i < {len(solver.quaternions)}; ++i) {{
        double *const a = &aim[quaternion[i]];
        const double *const b = &from[quaternion[i]];
        const double length = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]);
        const double near = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
        const double scale = (near < 0.0) ? (-1.0 / length) : (1.0 / length);

        a[0] *= scale;
        a[1] *= scale;
        a[2] *= scale;
        a[3] *= scale;
    }}
"""
    return text


def _way(solver: Solver, N: str) -> str:
    """Unit quaternions on the way, and measured positions inserted into the pose."""
    text = ""
    if solver.quaternions:
        text += f"""        for (i = 0; i < {len(solver.quaternions)}; ++i) {{
            double *const a = &way[quaternion[i]];
            const double length = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]);

            a[0] /= length;
            a[1] /= length;
            a[2] /= length;
            a[3] /= length;
        }}
"""
    if solver.sets:
        text += f"""        for (i = 0; i < {N}_MEASURED; ++i) {{
            state->pose[place[i]] = way[i];
        }}
"""
    return text


def _wind(solver: Solver) -> str:
    """Full turns put back, so that the next call begins where this one ends."""
    if not solver.turning:
        return ""
    return f"""
    if (status == 0) {{
        for (i = 0; i < {len(solver.turning)}; ++i) {{
            const int c = turning[i];

            state->pose[place[c]] += q[c] - aim[c];
        }}
    }}"""
