"""An FMU of FMI 3.0 for co-simulation: the C code, a wrapper, and for this platform the compiled library.

Inputs are the arrays q, dq, ddq, the output is the array tau, which is computed when it is asked for. Closed
robots begin at the last pose. The wrapper declares what it needs of FMI itself: no header is required.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from string import Template
from xml.sax.saxutils import quoteattr

import numpy as np

from dynid import __version__
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.code.c_file import CFile
from dynid.exporters.code.compiled import compiled, compiler
from dynid.exporters.code.model import ControllerModel
from dynid.exporters.code.printing import CERTIFICATE, comment
from dynid.exporters.contract import EffortsOf

_ARRAYS = {"q": "positions", "dq": "velocities", "ddq": "accelerations", "tau": "efforts"}
_REFERENCE = {name: k + 1 for k, name in enumerate(_ARRAYS)}  # 0 is the time
_ENDING = {"linux": "so", "darwin": "dylib", "windows": "dll"}
_NOT_SUPPORTED = """
    InstantiateModelExchange InstantiateScheduledExecution EnterEventMode EnterConfigurationMode
    ExitConfigurationMode GetFloat32 GetInt8 GetUInt8 GetInt16 GetUInt16 GetInt32 GetUInt32 GetInt64 GetUInt64
    GetBoolean GetString GetBinary GetClock SetFloat32 SetInt8 SetUInt8 SetInt16 SetUInt16 SetInt32 SetUInt32
    SetInt64 SetUInt64 SetBoolean SetString SetBinary SetClock GetNumberOfVariableDependencies
    GetVariableDependencies GetFMUState SetFMUState FreeFMUState SerializedFMUStateSize SerializeFMUState
    DeserializeFMUState GetDirectionalDerivative GetAdjointDerivative GetIntervalDecimal GetIntervalFraction
    GetShiftDecimal GetShiftFraction SetIntervalDecimal SetIntervalFraction SetShiftDecimal SetShiftFraction
    EvaluateDiscreteStates UpdateDiscreteStates EnterContinuousTimeMode CompletedIntegratorStep SetTime
    SetContinuousStates GetContinuousStateDerivatives GetEventIndicators GetContinuousStates
    GetNominalsOfContinuousStates GetNumberOfEventIndicators GetNumberOfContinuousStates EnterStepMode
    GetOutputDerivatives ActivateModelPartition
"""
_WRAPPER = """\
/* Functions of FMI 3.0 around $NAME.c, for co-simulation. */
#include "$NAME.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#ifdef FMI3_FUNCTION_PREFIX
#define FMI(name) JOINED(FMI3_FUNCTION_PREFIX, fmi3##name)
#else
#define FMI(name) fmi3##name
#endif

enum { OK = 0, DISCARD = 2, ERROR = 3 };

typedef struct {
    double time;
    double q[${UPPER}_MEASURED];
    double dq[${UPPER}_MEASURED];
    double ddq[${UPPER}_MEASURED];
    double tau[${UPPER}_ACTUATORS];
$STATE_FIELD} instance_t;

static void reset(instance_t *one)
{
    static const double start[${UPPER}_MEASURED] = {$START};

    (void)memset(one, 0, sizeof *one);
    (void)memcpy(one->q, start, sizeof start);
$STATE_START}

static int evaluated(instance_t *one)
{
$EVALUATE}

static double *variable(instance_t *one, uint32_t reference, size_t *size)
{
    *size = ${UPPER}_MEASURED;
    switch (reference) {
    case 0: *size = 1; return &one->time;
    case 1: return one->q;
    case 2: return one->dq;
    case 3: return one->ddq;
    case 4: *size = ${UPPER}_ACTUATORS; return one->tau;
    default: return NULL;
    }
}

EXPORT const char *FMI(GetVersion)(void)
{
    return "3.0";
}

EXPORT void *FMI(InstantiateCoSimulation)(const char *name, const char *token, const char *path, bool visible,
    bool logging, bool events, bool early, const uint32_t needed[], size_t n_needed, void *environment,
    void (*log)(void), void (*update)(void))
{
    instance_t *one;

    (void)name, (void)path, (void)visible, (void)logging, (void)events, (void)early, (void)needed;
    (void)n_needed, (void)environment, (void)log, (void)update;
    if ((token == NULL) || (strcmp(token, "$TOKEN") != 0)) {
        return NULL;
    }
    one = (instance_t *)malloc(sizeof *one);
    if (one != NULL) {
        reset(one);
    }
    return one;
}

EXPORT void FMI(FreeInstance)(void *one)
{
    free(one);
}

EXPORT int FMI(Reset)(void *one)
{
    reset((instance_t *)one);
    return OK;
}

EXPORT int FMI(SetDebugLogging)(void *one, bool on, size_t count, const char *const categories[])
{
    (void)one, (void)on, (void)count, (void)categories;
    return OK;
}

EXPORT int FMI(EnterInitializationMode)(void *one, bool tolerance_given, double tolerance, double start,
    bool stop_given, double stop)
{
    (void)tolerance_given, (void)tolerance, (void)stop_given, (void)stop;
    ((instance_t *)one)->time = start;
    return OK;
}

EXPORT int FMI(ExitInitializationMode)(void *one)
{
    (void)one;
    return OK;
}

EXPORT int FMI(Terminate)(void *one)
{
    (void)one;
    return OK;
}

EXPORT int FMI(SetFloat64)(void *one, const uint32_t references[], size_t count, const double values[],
    size_t n_values)
{
    size_t i, size, at = 0;

    for (i = 0; i < count; ++i) {
        double *x = variable((instance_t *)one, references[i], &size);
        if ((x == NULL) || (references[i] == 0) || (references[i] == 4) || (at + size > n_values)) {
            return ERROR;
        }
        (void)memcpy(x, values + at, size * sizeof *x);
        at += size;
    }
    return OK;
}

EXPORT int FMI(GetFloat64)(void *one, const uint32_t references[], size_t count, double values[],
    size_t n_values)
{
    size_t i, size, at = 0;
    int status = OK;

    for (i = 0; i < count; ++i) {
        double *x = variable((instance_t *)one, references[i], &size);
        if ((x == NULL) || (at + size > n_values)) {
            return ERROR;
        }
        if (references[i] == 4) {
            status = evaluated((instance_t *)one);
        }
        (void)memcpy(values + at, x, size * sizeof *x);
        at += size;
    }
    return status;
}

EXPORT int FMI(DoStep)(void *one, double now, double step, bool no_return, bool *events, bool *stop,
    bool *early, double *reached)
{
    (void)no_return;
    ((instance_t *)one)->time = now + step;
    *events = false;
    *stop = false;
    *early = false;
    *reached = now + step;
    return OK;
}

/* Not part of co-simulation without events, states and clocks. */
#define NOT_SUPPORTED(name) \\
    EXPORT int FMI(name)(void) \\
    { \\
        return ERROR; \\
    }
$OTHERS
"""
_CLOSED = """\
    const int open = ${NAME}_inverse_dynamics_warm(&one->state, one->q, one->dq, one->ddq, one->tau);

    return (open == 0) ? OK : DISCARD;
"""
_TREE = """\
    ${NAME}_inverse_dynamics(one->q, one->dq, one->ddq, one->tau);
    return OK;
"""


def write_fmu(made: CFile, file: Path) -> None:
    """Write NAME.fmu: sources, description, and the library of this platform if there is a compiler."""
    closed, name = made.model.solver is not None, made.name
    header, source = (text.replace(CERTIFICATE, "certificate: see export.json") for text in made.texts())
    token = hashlib.sha256((header + source + __version__).encode()).hexdigest()
    parts = {
        "STATE_FIELD": f"    {name}_state state;\n" if closed else "",
        "STATE_START": f"    {name}_start(&one->state);\n" if closed else "",
        "START": ", ".join(map(repr, _start(made.model))),
        "EVALUATE": Template(_CLOSED if closed else _TREE).substitute(NAME=name),
        "OTHERS": "\n".join(f"NOT_SUPPORTED({function})" for function in _NOT_SUPPORTED.split()),
        "TOKEN": token,
        "UPPER": name.upper(),
        "NAME": name,
    }
    wrapper = Template(_WRAPPER).substitute(parts)
    sources = {f"{name}.c": source, f"{name}.h": header, f"{name}_fmu.c": wrapper}
    content = {f"sources/{key}": text.encode("ascii") for key, text in sources.items()}
    content["sources/buildDescription.xml"] = _build_description(name).encode()
    content["modelDescription.xml"] = _description(made, token).encode()
    content |= _binary(name, sources)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in content.items():
            archive.writestr(zipfile.ZipInfo(key), data, zipfile.ZIP_DEFLATED)  # of 1980: same bytes again


def _start(model: ControllerModel) -> list[float]:
    """Measured positions before any are given: at the start pose, where the loops close."""
    q = [0.0] * len(model.names)
    if model.solver is not None:
        for k, place, _ in model.solver.measured:
            q[k] = model.solver.start[place]
        for k, place in model.solver.quaternions:
            q[k : k + 4] = model.solver.start[place : place + 4]
    return q


def _description(made: CFile, token: str) -> str:
    """modelDescription.xml; names of joints are texts in it."""
    robot = made.model.robot
    motors = [actuator.name for actuator in robot.actuators]
    lines = ['    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>']
    for name, meaning in _ARRAYS.items():
        owners = motors if name == "tau" else list(made.model.names)
        about = quoteattr(comment(f"{meaning}: {', '.join(owners)} (SI)"))
        begin = _start(made.model) if name == "q" else [0.0] * len(owners)
        kind = f'causality="input" start="{" ".join(map(repr, begin))}"'
        kind = 'causality="output"' if name == "tau" else kind
        lines += [
            f'    <Float64 name="{name}" valueReference="{_REFERENCE[name]}" variability="continuous" {kind}'
            f" description={about}>",
            f'      <Dimension start="{len(owners)}"/>',
            "    </Float64>",
        ]
    tau = _REFERENCE["tau"]
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(comment(robot.name))}
    instantiationToken="{token}" generationTool="dynid {__version__}"
    description={quoteattr(comment(" ".join(made.about)))}>
  <CoSimulation modelIdentifier="{made.name}" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables>
{chr(10).join(lines)}
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="{tau}" dependencies="1 2 3"/>
    <InitialUnknown valueReference="{tau}" dependencies="1 2 3"/>
  </ModelStructure>
</fmiModelDescription>
"""


def _build_description(name: str) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{name}">
    <SourceFileSet language="C99">
      <SourceFile name="{name}.c"/>
      <SourceFile name="{name}_fmu.c"/>
    </SourceFileSet>
    <Library name="m"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""


def _binary(name: str, sources: Mapping[str, str]) -> dict[str, bytes]:
    """The library under its name in the archive; none without a compiler."""
    system = "windows" if sys.platform == "win32" else sys.platform
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    if compiler() is None or system not in _ENDING:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for key, text in sources.items():
            (Path(folder) / key).write_text(text, encoding="ascii")
        target = Path(folder) / f"{name}.{_ENDING[system]}"
        compiled([Path(folder) / f"{name}.c", Path(folder) / f"{name}_fmu.c"], target)
        return {f"binaries/{machine}-{system}/{target.name}": target.read_bytes()}


def fmu_efforts(file: Path, name: str, n_actuators: int) -> EffortsOf:
    """Efforts of an FMU whose sources are compiled again, by its functions, in the order of the states."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with zipfile.ZipFile(file) as archive:
            for key in (f"{name}.c", f"{name}.h", f"{name}_fmu.c"):
                (Path(folder) / key).write_bytes(archive.read(f"sources/{key}"))
            token = archive.read("modelDescription.xml").partition(b'instantiationToken="')[2]
        target = Path(folder) / "model.so"
        compiled([Path(folder) / f"{name}.c", Path(folder) / f"{name}_fmu.c"], target)
        model = ctypes.CDLL(str(target))
    model.fmi3InstantiateCoSimulation.restype = ctypes.c_void_p

    def instance() -> ctypes.c_void_p:
        none = (None, False, False, False, False, None, ctypes.c_size_t(0), None, None, None)
        made = model.fmi3InstantiateCoSimulation(b"one", token.partition(b'"')[0], *none)
        if not made:
            raise InputError("the FMU makes no instance", file=file)
        return ctypes.c_void_p(made)

    def efforts(
        q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
    ) -> Float[Array, "n a"]:
        inputs = np.ascontiguousarray(np.hstack([q, dq, ddq]), dtype=float)
        tau = np.full((len(q), n_actuators), np.nan)
        places = [(ctypes.c_uint32 * 3)(1, 2, 3), (ctypes.c_uint32 * 1)(4)]
        for row, out in zip(inputs, tau, strict=True):
            # States that are not a motion are far apart: each gets an instance of its own.
            handle = instance()
            sizes = [ctypes.c_size_t(size) for size in (row.size, out.size)]
            given, asked = (ctypes.c_void_p(x.ctypes.data) for x in (row, out))
            model.fmi3SetFloat64(handle, places[0], ctypes.c_size_t(3), given, sizes[0])
            if model.fmi3GetFloat64(handle, places[1], ctypes.c_size_t(1), asked, sizes[1]) != 0:
                out[:] = np.nan
            model.fmi3FreeInstance(handle)
        return tau

    return efforts
