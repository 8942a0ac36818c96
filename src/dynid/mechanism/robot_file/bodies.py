"""Bodies and payloads of the robot file: which parameters, fixed values, priors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.common.notices import notice
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Body, Payload
from dynid.mechanism.robot_file.joints import FRAME_KEYS, read_frame
from dynid.mechanism.robot_file.scope import Scope

_MOMENTS = ("MX", "MY", "MZ")


def read_bodies(entry: Entry, scope: Scope, bodies: Mapping[str, Body]) -> dict[str, Body]:
    """All `bodies`, with the changes of the file's `bodies:`."""
    changed = dict(bodies)
    for name, item in entry.mapping().items():
        if name not in bodies:
            raise item.error(f"unknown body '{name}'" + nearest(name, bodies), "name a body of a joint")
        changed[name] = _body(item, scope, bodies[name])
    return changed


def _body(entry: Entry, scope: Scope, body: Body) -> Body:
    fields = entry.fields(("parameters", "known", "prior"))
    parameters = body.parameters
    if "parameters" in fields:
        listed = [item.choice(SYMBOLS) for item in fields["parameters"].items()]
        parameters = tuple(symbol for symbol in SYMBOLS if symbol in listed)
    known = read_known(fields["known"], scope) if "known" in fields else body.known
    prior = read_prior(fields["prior"], scope, body.name) if "prior" in fields else body.prior
    for symbol, value in known.items():
        if symbol not in parameters and value != 0.0:
            raise entry.error(
                f"{symbol} is fixed to {value:g}, but '{body.name}' does not have that parameter",
                f"add {symbol} to 'parameters'",
            )
    return replace(
        body, parameters=parameters, known={s: v for s, v in known.items() if s in parameters}, prior=prior
    )


def read_known(entry: Entry, scope: Scope) -> dict[str, float]:
    """Values taken as exact; impossible ones are refused."""
    values = read_inertial(entry, scope)
    if wrong := _impossible(values):
        raise entry.error(f"{wrong} is negative, which is physically impossible", "correct or remove it")
    return values


def read_prior(entry: Entry, scope: Scope, name: str) -> dict[str, float]:
    """Prior values; those of an impossible body are excluded, with a notice."""
    values = read_inertial(entry, scope)
    if wrong := _impossible(values):
        fault = f"its {wrong} is negative"
        scope.notices.append(notice("impossible-prior", place=entry.place, owner=f"'{name}'", fault=fault))
        return {}
    return values


def _impossible(values: Mapping[str, float]) -> str:
    """A mass or moment of inertia below zero; empty if there is none."""
    return next((f"{s} {values[s]:g}" for s in ("M", "XX", "YY", "ZZ") if values.get(s, 0.0) < 0.0), "")


def read_inertial(entry: Entry, scope: Scope) -> dict[str, float]:
    """Some of the ten parameters; `com` [m] together with M gives MX, MY, MZ."""
    fields = entry.fields((*SYMBOLS, "com"))
    values = {symbol: scope.number(fields[symbol]) for symbol in SYMBOLS if symbol in fields}
    if "com" in fields:
        if "M" not in values or any(symbol in values for symbol in _MOMENTS):
            raise fields["com"].error("'com' needs M and excludes MX, MY and MZ", "give M and com")
        com = fields["com"].vector(scope.number)
        values |= {symbol: values["M"] * x for symbol, x in zip(_MOMENTS, com, strict=True)}
    return {symbol: values[symbol] for symbol in SYMBOLS if symbol in values}


def read_payloads(
    entry: Entry, scope: Scope, bodies: Mapping[str, object] | None = None
) -> dict[str, Payload]:
    """The mapping `payloads:` of a robot or experiment file; without `bodies` names stay unchecked."""
    payloads = {}
    for name, item in entry.mapping().items():
        fields = item.fields(("body", *FRAME_KEYS, "known", "prior"), required=("body",))
        body = fields["body"].text()
        if bodies is not None and body not in bodies:
            raise fields["body"].error(f"unknown body '{body}'" + nearest(body, bodies), "name a body")
        if bodies is not None and name in bodies:
            raise item.error(f"payload '{name}' has the name of a body", "choose another name")
        payloads[name] = Payload(
            name,
            body,
            read_frame(item, fields, scope),
            read_known(fields["known"], scope) if "known" in fields else {},
            read_prior(fields["prior"], scope, name) if "prior" in fields else {},
        )
    return payloads
