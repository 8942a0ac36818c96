"""Mass and centre of mass of every body: where a value comes from, and how far from the description it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dynid.base.grouping import listed
from dynid.report.numbers import number, sigma_text, value_text
from dynid.statistics.uncertainty import student_t

# Where a mass comes from, and what that means.
_MEASURED, _COMBINED, _DESCRIBED = "measured", "only in combination", "from the description"
_ORIGINS = {
    _MEASURED: "the log fixes this mass; ± is half of the 95 % interval, - where the log gives none",
    _COMBINED: "the log fixes sums with other bodies; with another mass here and there, efforts are the same",
    _DESCRIBED: "the log shows nothing of this mass",
}
_SAME = 1e-3  # of a described mass: a value that differs by less is the described one
_SILENT = 0.01  # share of the log below which the description alone gives a value
# CAD misses cables, grease and screws, several percent of a link: larger differences need a comment.
_FAR_MASS = 0.2  # of the described mass
_FAR_CENTRE = 0.2  # of its distance from the origin of the body
_FAR_MM = 20.0  # and at least this much
_MOST = 6  # bodies that are named


def is_known(entry: Mapping[str, Any]) -> bool:
    """Whether a body of a drawing has a mass that the log or the description gives."""
    return entry["mass"] is not None and bool(entry["prior_mass"] or entry["mass_sigma"] is not None)


def body_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the table: text of mass [kg] and centre of mass [mm, body frame], found and described."""
    share, sigma, mass, prior = entry["mass_share"], entry["mass_sigma"], entry["mass"], entry["prior_mass"]
    times = float(student_t(entry.get("mass_dof") or math.inf, 0.95))
    half = None if sigma is None else times * sigma
    spread = [one and sigma_text(1e3 * times * one) for one in entry.get("centre_sigma") or ()]
    silent = share <= _SILENT and prior is not None and abs(mass - prior) <= _SAME * abs(prior)
    measured = half is not None
    change = mass / prior - 1.0 if prior else 0.0
    far_mass = abs(change) > _FAR_MASS and abs(mass - (prior or 0.0)) > (half or 0.0)
    off = _distance(entry["centre"], entry["prior_centre"])
    far_centre = off > max(_FAR_MM, _FAR_CENTRE * _distance(entry["prior_centre"], (0.0, 0.0, 0.0)))
    return {
        "name": entry["name"],
        "mass": f"{mass:.4g}" if half is None else value_text(mass, half),
        "half": "" if half is None else sigma_text(half),
        "prior_mass": "-" if prior is None else f"{prior:.4g}",
        "change": f"{100.0 * change:+z.1f} %" if prior and (measured or far_mass) else None,
        "centre": _millimetres(entry["centre"]),
        "centre_half": ", ".join(one or "-" for one in spread) if any(spread) else "",
        "prior_centre": _millimetres(entry["prior_centre"]),
        "off": f"{number(off, 2)} mm off" if far_centre else "",
        "far": far_mass or far_centre,
        "origin": _MEASURED if measured else _DESCRIBED if silent else _COMBINED,
        "measured": measured,
        "payload": entry["payload"],
        "positive": mass >= 0.0,
    }


def origins_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Where the masses of a table come from -> what that means."""
    given = {row["origin"] for row in rows}
    return {origin: text for origin, text in _ORIGINS.items() if origin in given}


def far_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Bodies that are far from their description, and what that may mean; empty if none is."""
    far = [row for row in rows if row["far"] and not row["payload"]]
    if not far:
        return ""
    names = listed([row["name"] for row in far], _MOST)
    text = (
        f"{names} (mass by more than {100.0 * _FAR_MASS:.0f} %, or centre of mass by more than"
        f" {_FAR_MM:.0f} mm and {100.0 * _FAR_CENTRE:.0f} % of its distance from the origin)."
    )
    if any(row["measured"] for row in far):
        text += " Where the mass is measured, check the description (tool, cables, units) and the drive gain."
    if not all(row["measured"] for row in far):
        text += (
            " Where it is known only in combination, neighbours may have exchanged mass without any effect on"
            " the efforts. Do not read single values as weighed masses. If the verdict names a missing"
            " effect, a part of it may be in these values."
        )
    return text


def _millimetres(place: Sequence[float] | None) -> str:
    return "-" if place is None else ", ".join(f"{1e3 * x:.1f}" for x in place).replace("-0.0", "0.0")


def _distance(one: Sequence[float] | None, other: Sequence[float] | None) -> float:
    """In [mm]; 0 where one is not known."""
    return 0.0 if one is None or other is None else 1e3 * math.dist(one, other)
