"""`description` of a `result.json`: dimensions, zeros and gravity that a result assumes or has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from dynid.statistics.description import Description, Quantity


def description_document(description: Description) -> dict[str, Any]:
    """As plain values; matrices only where they have entries."""
    document: dict[str, Any] = {
        "symbols": {name: asdict(one) for name, one in description.symbols.items()},
        "zeros": {name: asdict(one) for name, one in description.zeros.items()},
        "gravity": list(description.gravity),
        "gravity_sigma": description.gravity_sigma,
        "shares": {name: dict(own) for name, own in description.shares.items()},
        "per_thousandth": {name: dict(own) for name, own in description.per_thousandth.items()},
    }
    if description.names:
        document["sensitivity"] = {
            "quantities": list(description.names),
            "parameters": list(description.parameters),
            "slopes": description.slopes.tolist(),
            "covariance": description.covariance.tolist(),
        }
    return document


def description_of(document: Mapping[str, Any]) -> Description:
    """Read back; what is misshapen is refused by the caller."""
    import msgspec

    def shaped(key: str, kind: Any, missing: Any) -> Any:
        return msgspec.convert(document.get(key, missing), kind)

    own = shaped("sensitivity", dict[str, Any], {})
    names = msgspec.convert(own.get("quantities", []), tuple[str, ...])
    parameters = msgspec.convert(own.get("parameters", []), tuple[str, ...])
    slopes = msgspec.convert(own.get("slopes", []), list[list[float]])
    covariance = msgspec.convert(own.get("covariance", []), list[list[float]])
    return Description(
        symbols=shaped("symbols", dict[str, Quantity], {}),
        zeros=shaped("zeros", dict[str, Quantity], {}),
        gravity=shaped("gravity", tuple[float, ...], []),
        gravity_sigma=shaped("gravity_sigma", float | None, None),
        names=names,
        parameters=parameters,
        slopes=np.array(slopes, dtype=float).reshape(len(parameters), len(names)),
        covariance=np.array(covariance, dtype=float).reshape(len(names), len(names)),
        shares=shaped("shares", dict[str, dict[str, float]], {}),
        per_thousandth=shaped("per_thousandth", dict[str, dict[str, float]], {}),
    )
