"""Mass and centre of mass of a load as text, with standard deviations from the joint covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.report.numbers import sigma_text, value_text
from dynid.statistics.assemble import EstimateParts

_FIRST = ("MX", "MY", "MZ")


def load_words(parts: EstimateParts, bodies: Sequence[str]) -> dict[str, str]:
    """`load box` -> `2.6002 +- 0.0013 kg, centre of mass (12.0, -8.0, 63.0) +- (0.1, 0.1, 0.2) mm ..`.

    c = h / M, sigma_c = |dh / M - c dM / M|: h and M err together.

    Args:
        parts: Parameters and their covariance.
        bodies: Tools and payloads; those whose mass or first moments are regrouped are left out.
    """
    fitted = [one for one in parts.parameters if one.sigma is not None]
    place: Mapping[str, int] = {one.name: k for k, one in enumerate(fitted)}
    found = {}
    for body in bodies:
        mass = place.get(f"M_{body}")
        if mass is None or fitted[mass].value <= 0:
            continue
        kg, sigma = fitted[mass].value, fitted[mass].sigma
        text = f"{value_text(kg, sigma)} +- {sigma_text(sigma)} kg"
        moments = [place.get(f"{symbol}_{body}") for symbol in _FIRST]
        if None not in moments:
            rows = np.zeros((3, len(fitted)))
            centre = np.array([fitted[k].value for k in moments if k is not None]) / kg
            for i, k in enumerate(moments):
                rows[i, k], rows[i, mass] = 1.0 / kg, -centre[i] / kg
            spread = 1e3 * np.sqrt(np.einsum("ip,pq,iq->i", rows, parts.covariance, rows))
            text += f", centre of mass ({_listed(1e3 * centre)}) +- ({_listed(spread)}) mm in its frame"
        found[f"load {body}"] = text
    return found


def _listed(values: Float[Array, "3"]) -> str:
    return ", ".join(f"{x:.2f}" for x in values)
