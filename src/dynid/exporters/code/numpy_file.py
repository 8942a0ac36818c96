"""Controller code as a NumPy module without dynid: the same functions, for any number of samples at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.exporters.code.c_solver import ARRIVED, NEAR, PARTS, REACH, STEPS
from dynid.exporters.code.coordinates import POSE, Function, Solver
from dynid.exporters.code.model import PARAMETER, ControllerModel
from dynid.exporters.code.printing import CERTIFICATE, Language, comment, identifier, statements

_CALLS = {
    "sin": "np.sin({})",
    "cos": "np.cos({})",
    "tan": "np.tan({})",
    "sqrt": "np.sqrt({})",
    "exp": "np.exp({})",
    "abs": "np.abs({})",
    "sign": "np.sign({})",
    "below": "np.where({} < 0.0, 1.0, 0.0)",
    "atan2": "np.arctan2({}, {})",
    "pow": "np.power({}, {})",
}
_LANGUAGE = Language(
    lambda array, index: f"VALUES[{index}]" if array == PARAMETER else f"{array}[..., {index}]",
    lambda op, arguments: _CALLS[op].format(*arguments),
)
_MATRICES = {"M": "(len(FREEDOMS), len(FREEDOMS))", "Y": "(len(ACTUATORS), len(PARAMETERS))"}


@dataclass(frozen=True, eq=False)
class NumpyFile:
    """The module of a model.

    Args:
        model: The functions.
        about: Lines of its docstring.
    """

    model: ControllerModel
    about: Sequence[str]

    @property
    def name(self) -> str:
        """Stem of the file."""
        return identifier(self.model.robot.name)

    def text(self) -> str:
        """The module."""
        solver = self.model.solver
        lines = ['"""' + comment(self.about[0]), "", *(comment(line) for line in self.about[1:]), '"""', ""]
        lines += [f"# {CERTIFICATE}", "", "import numpy as np", "", *self._constants(solver), ""]
        for function in (*([solver.newton] if solver else []), *self.model.functions):
            lines += ["", *_straight(function)]
        lines += _STATES.splitlines()
        if solver is not None:
            lines += ["", "", *_track(solver).splitlines()]
        for function in self.model.functions:
            lines += ["", *_public(function, solver is not None)]
        return "\n".join(lines).rstrip() + "\n"

    def _constants(self, solver: Solver | None) -> list[str]:
        robot, values = self.model.robot, self.model.values
        lists = {
            "MEASURED": self.model.names,
            "ACTUATORS": [actuator.name for actuator in robot.actuators],
            "FREEDOMS": self.model.freedoms,
            "PARAMETERS": [parameter.name for parameter in values],
            "UNITS": [parameter.unit for parameter in values],
        }
        lines = []
        for name, several in lists.items():
            lines += [f"{name} = (", *(f"    {item!a}," for item in several), ")"]
        lines += [
            "VALUES = np.array([",
            *(f"    {parameter.value!r},  # {comment(parameter.name)}" for parameter in values),
            "])",
        ]
        if solver is not None:
            lines += ["START = np.array([", *(f"    {x!r}," for x in solver.start), "])"]
        return lines


def _straight(function: Function) -> list[str]:
    text = statements(function.outputs, _LANGUAGE)
    lines = [f"def _{function.name}({', '.join(function.inputs)}):"]
    lines += [f"    {name} = {made}" for name, made in text.temporaries]
    shape = f"{function.inputs[0]}.shape[:-1]"
    for array, made in text.outputs.items():
        lines.append(f"    {array} = np.empty({shape} + ({len(made)},))")
        lines += [f"    {array}[..., {i}] = {expression}" for i, expression in enumerate(made)]
    return [*lines, f"    return {', '.join(text.outputs)}", ""]


def _public(function: Function, closed: bool) -> list[str]:
    inputs = [argument for argument in function.inputs if argument not in (POSE, "internal")]
    tension = "internal" in function.inputs
    arguments = [*inputs, *(["internal=None"] if tension else []), *(["pose=None"] if closed else [])]
    output = next(iter(function.outputs))
    lines = [f"def {function.name}({', '.join(arguments)}):", *_docstring(function, tension, closed)]
    lines.append(f"    {', '.join(inputs)}{',' if len(inputs) == 1 else ''} = _states({', '.join(inputs)})")
    if tension:
        lines.append("    internal = np.zeros(len(ACTUATORS)) if internal is None else internal")
        lines.append(
            "    internal = np.broadcast_to(np.asarray(internal, float), q.shape[:-1] + (len(ACTUATORS),))"
        )
    if closed:
        lines.append("    pose = track(q) if pose is None else np.asarray(pose, float)")
    lines.append(f"    found = _{function.name}({', '.join(function.inputs)})")
    shape = _MATRICES.get(output)
    lines.append(f"    return found.reshape(q.shape[:-1] + {shape})" if shape else "    return found")
    return [*lines, ""]


def _docstring(function: Function, tension: bool, closed: bool) -> list[str]:
    lines = [f'    """{function.about[0].upper()}{function.about[1:]}.', ""]
    lines.append(
        "    q, dq, ddq: positions in the order of MEASURED and their time derivatives, shape (..., m), SI."
    )
    if tension:
        lines.append("    internal: preferred efforts, shape (..., a): what moves nothing of them is added.")
    if closed:
        lines.append("    pose: of all joints, see `track`; default: tracked from the start pose.")
    return [*lines, '    """']


_STATES = '''
def _states(*given):
    """Arrays of one shape, the last axis that of MEASURED."""
    made = np.broadcast_arrays(*(np.asarray(argument, float) for argument in given))
    if made[0].shape[-1:] != (len(MEASURED),):
        raise ValueError("the last axis has %d entries, not %d" % (made[0].shape[-1], len(MEASURED)))
    return made
'''


def _track(solver: Solver) -> str:
    """The program around the Newton steps; the same as in C, for all samples together."""
    columns = [c for c, _, _ in solver.measured] + [c + k for c, _ in solver.quaternions for k in range(4)]
    places = [p for _, p, _ in solver.measured] + [p + k for _, p in solver.quaternions for k in range(4)]
    units = [unit for _, _, unit in solver.measured] + [1.0] * (4 * len(solver.quaternions))
    sets = "        pose[..., place] = way[..., column]\n" if solver.sets else ""
    others = " | ~closed" if solver.sets else ""
    judged = "&=" if solver.sets else "="  # sensors that contradict each other: at the end only
    return f'''def track(q, pose=None):
    """Positions of all joints, shape (..., n), from measured ones, shape (..., m).

    pose: where to begin, shape (n,) or (..., n); default: the start pose. NaN where the loops do not close.
    """
    (q,) = _states(q)
    column, place, unit = {columns}, {places}, np.array({units})
    turning, quaternions = {[c for c, _ in solver.turning]}, {[c for c, _ in solver.quaternions]}
    begin = START if pose is None else np.asarray(pose, float)
    pose = np.array(np.broadcast_to(begin, q.shape[:-1] + START.shape))
    origin = np.array(q)
    origin[..., column] = pose[..., place]
    aim = np.array(q)
    aim[..., turning] -= 2.0 * np.pi * np.round((aim - origin)[..., turning] / (2.0 * np.pi))
    for c in quaternions:
        part = slice(c, c + 4)
        aim[..., part] /= np.linalg.norm(aim[..., part], axis=-1, keepdims=True)
        near = np.sum(aim[..., part] * origin[..., part], axis=-1, keepdims=True)
        aim[..., part] *= np.where(near < 0.0, -1.0, 1.0)
    distance = np.max(np.abs((aim - origin)[..., column]) / unit, initial=0.0)
    parts = 1 + int(distance / {REACH!r}) if distance < {REACH * PARTS!r} else {PARTS}
    closed = np.ones(q.shape[:-1], dtype=bool)
    for k in range(1, parts + 1):
        way, small = origin + k / parts * (aim - origin), {NEAR!r} if k < parts else {ARRIVED!r}
        for c in quaternions:
            way[..., c : c + 4] /= np.linalg.norm(way[..., c : c + 4], axis=-1, keepdims=True)
{sets}        for _ in range({STEPS}):
            pose, size = _newton(pose, way)
            arrived = size[..., 0] < small
            if np.all(arrived{others}):
                break
        closed {judged} arrived
    pose[~closed] = np.nan
    of = dict(zip(column, place))
    for c in turning:
        pose[..., of[c]] += q[..., c] - aim[..., c]
    return pose
'''
