"""Controller code in C99: one header, one file, no allocation, fixed sizes, sin cos sqrt fabs of libm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.exporters.code.c_solver import solver_text, state_text
from dynid.exporters.code.coordinates import POSE, Function, Solver
from dynid.exporters.code.model import PARAMETER, ControllerModel
from dynid.exporters.code.printing import (
    CERTIFICATE,
    Language,
    Statements,
    comment,
    identifier,
    parameter_names,
    statements,
    wrapped,
)

_CALLS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sqrt": "sqrt",
    "exp": "exp",
    "abs": "fabs",
    "atan2": "atan2",
    "pow": "pow",
    "sign": "sign_of",
    "below": "below_zero",
}
_HELPERS = {
    "sign": "static double sign_of(double x)\n{\n    return (double)((x > 0.0) - (x < 0.0));\n}\n",
    "below": "static double below_zero(double x)\n{\n    return (x < 0.0) ? 1.0 : 0.0;\n}\n",
}
_SIZES = {"tau": "{N}_ACTUATORS", "M": "{N}_FREEDOMS * {N}_FREEDOMS", "Y": "{N}_ACTUATORS * {N}_PARAMETERS"}


@dataclass(frozen=True, eq=False)
class CFile:
    """Header and source of a model.

    Args:
        model: The functions.
        about: Lines of the comment at the top.
    """

    model: ControllerModel
    about: Sequence[str]

    @property
    def name(self) -> str:
        """First part of all names, and stem of the files."""
        return identifier(self.model.robot.name)

    @property
    def _N(self) -> str:
        return self.name.upper()

    def texts(self) -> tuple[str, str]:
        """Header and source."""
        functions, solver = self.model.functions, self.model.solver
        return self._header(functions, solver), self._source(functions, solver)

    # Header.

    def _header(self, functions: Sequence[Function], solver: Solver | None) -> str:
        N, robot = self._N, self.model.robot
        sizes = {
            "MEASURED": len(self.model.names),
            "ACTUATORS": len(robot.actuators),
            "FREEDOMS": len(self.model.freedoms),
            "PARAMETERS": len(self.model.values),
        }
        guard = f"{N}_CONTROLLER_H"
        lines = [*self._top(), f"#ifndef {guard}", f"#define {guard}", ""]
        lines += [f"#define {N}_{key} {size}" for key, size in sizes.items()]
        lines += [
            "",
            *self._orders(),
            *self._parameter_enum(),
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
        ]
        if solver is not None:
            lines += [*state_text(self.name, self.model.tree.n_q), ""]
        for function in functions:
            lines += [*self._declared(function, solver), ""]
        lines += [
            "/* Values of the parameters, in the order of the columns of the regressor. */",
            f"void {self.name}_parameters(double x[]);",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            f"#endif /* {guard} */",
        ]
        return "\n".join(lines) + "\n"

    def _top(self) -> list[str]:
        return ["/*", *(f" * {comment(line)}".rstrip() for line in (*self.about, CERTIFICATE)), " */"]

    def _orders(self) -> list[str]:
        robot = self.model.robot
        lists = {
            "q, dq, ddq (positions and their time derivatives, SI)": self.model.names,
            "tau (N m or N)": [actuator.name for actuator in robot.actuators],
            "rows and columns of the mass matrix": self.model.freedoms,
        }
        lines = ["/*", " * Orders of the arrays:"]
        for label, names in lists.items():
            lines.append(f" *   {label}:")
            lines += wrapped([comment(entry) for entry in names], indent=" *     ")
        return [*(line.rstrip(",") for line in lines), " */"]

    def _parameter_enum(self) -> list[str]:
        if not self.model.values:
            return []
        lines = ["", "/* Parameters: columns of the regressor, with unit and value. */", "enum {"]
        names = parameter_names(parameter.name for parameter in self.model.values)
        last = len(names) - 1
        for k, (name, parameter) in enumerate(zip(names, self.model.values, strict=True)):
            comma = "," if k < last else ""
            lines.append(
                f"    {self._N}_P_{name} = {k}{comma} /* {comment(parameter.unit)}: {parameter.value:.6g} */"
            )
        return [*lines, "};"]

    def _declared(self, function: Function, solver: Solver | None) -> list[str]:
        about = f"{function.about[0].upper()}{function.about[1:]}"
        output = next(iter(function.outputs))
        lines = [f"/* {comment(about)}: {_SIZES[output].format(N=self._N).replace('*', 'x')} numbers"]
        lines[0] += ", row by row. */" if output in ("M", "Y") else ". */"
        if "internal" in function.inputs:
            lines += [
                "/* With tension: internal are preferred efforts, in the order of tau. The part of them that",
                " * causes no motion is added to the least efforts. */",
            ]
        for suffix, arguments in self._variants(function):
            lines.append(f"void {self.name}_{function.name}{suffix}({_list(arguments, function)});")
            if solver is not None:
                state = f"{self.name}_state *state, "
                lines.append(
                    f"int {self.name}_{function.name}{suffix}_warm({state}{_list(arguments, function)});"
                )
        return lines

    def _variants(self, function: Function) -> list[tuple[str, list[str]]]:
        """Suffix and inputs of the public functions: without and with internal tension."""
        inputs = [name for name in function.inputs if name != POSE]
        if "internal" not in inputs:
            return [("", inputs)]
        return [("", [name for name in inputs if name != "internal"]), ("_with_tension", inputs)]

    # Source.

    def _source(self, functions: Sequence[Function], solver: Solver | None) -> str:
        printed = [(routine, self._printed(routine)) for routine in functions]
        newton = None if solver is None else (solver.newton, self._printed(solver.newton))
        everything = [code for _, code in [*printed, *([newton] if newton else [])]]
        used = frozenset[str]().union(*(code.operations for code in everything))
        lines = [*self._top(), f'#include "{self.name}.h"', "", "#include <math.h>", ""]
        lines += self._parameter_array()
        lines += [_HELPERS[op] for op in _HELPERS if op in used]
        if solver is not None and newton is not None:
            lines += self._function(*newton, static=True)
            lines += solver_text(self.name, solver, len(self.model.names))
        for function, text in printed:
            lines += self._function(function, text, static=True)
            lines += self._wrappers(function, solver)
        lines += self._parameters_function()
        return "\n".join(lines).rstrip() + "\n"

    def _parameter_array(self) -> list[str]:
        if not self.model.values:
            return []
        lines = [f"static const double parameter[{self._N}_PARAMETERS] = {{"]
        for entry in self.model.values:
            lines.append(f"    {entry.value!r}, /* {comment(entry.name)} [{comment(entry.unit)}] */")
        return [*lines, "};", ""]

    def _printed(self, function: Function) -> Statements:
        names = parameter_names(value.name for value in self.model.values)

        def leaf(array: str, index: int) -> str:
            return f"{array}[{self._N}_P_{names[index]}]" if array == PARAMETER else f"{array}[{index}]"

        def call(op: str, arguments: Sequence[str]) -> str:
            return f"{_CALLS[op]}({', '.join(arguments)})"

        return statements(function.outputs, Language(leaf, call))

    def _function(self, function: Function, text: Statements, *, static: bool) -> list[str]:
        arguments = _list(function.inputs, function)
        lines = [f"{'static ' if static else ''}void {function.name}_at({arguments})", "{"]
        lines += [f"    const double {name} = {made};" for name, made in text.temporaries]
        lines += [f"    (void){argument};" for argument in function.inputs if argument not in text.arrays]
        for array, made in text.outputs.items():
            lines += [f"    {array}[{i}] = {expression};" for i, expression in enumerate(made)]
        return [*lines, "}", ""]

    def _wrappers(self, function: Function, solver: Solver | None) -> list[str]:
        """Public functions around a static one."""
        lines: list[str] = []
        for suffix, arguments in self._variants(function):
            public, given = f"{self.name}_{function.name}{suffix}", list(function.inputs)
            begin = ["{"]
            if "internal" in given and "internal" not in arguments:
                given[given.index("internal")] = "no_internal"
                begin += [f"    static const double no_internal[{self._N}_ACTUATORS] = {{0.0}};", ""]
            if solver is not None:
                given[0] = "state->pose"
            call = f"    {function.name}_at({', '.join([*given, *function.outputs])});"
            listed = _list(arguments, function)
            if solver is None:
                lines += [f"void {public}({listed})", *begin, call, "}", ""]
            else:
                track = f"    const int status = {self.name}_track(state, q);"
                lines += [f"int {public}_warm({self.name}_state *state, {listed})", *begin, track, "", call]
                lines += ["    return status;", "}", "", *self._cold(public, arguments, function), ""]
        return lines

    def _cold(self, public: str, arguments: Sequence[str], function: Function) -> list[str]:
        """The function that begins at the start pose."""
        output = next(iter(function.outputs))
        return f"""void {public}({_list(arguments, function)})
{{
    {self.name}_state state;
    int i;

    {self.name}_start(&state);
    if ({public}_warm({", ".join(["&state", *arguments, output])}) != 0) {{
        for (i = 0; i < {_SIZES[output].format(N=self._N)}; ++i) {{
            {output}[i] = NAN;
        }}
    }}
}}""".splitlines()

    def _parameters_function(self) -> list[str]:
        head = [f"void {self.name}_parameters(double x[])", "{"]
        if not self.model.values:
            return [*head, "    (void)x;", "}"]
        body = [
            "    int i;",
            "",
            f"    for (i = 0; i < {self._N}_PARAMETERS; ++i) {{",
            "        x[i] = parameter[i];",
            "    }",
        ]
        return [*head, *body, "}"]


def _list(inputs: Sequence[str], function: Function) -> str:
    """Parameters of a C function."""
    outputs = [f"double {array}[]" for array in function.outputs]
    return ", ".join([*(f"const double {array}[]" for array in inputs), *outputs])
