"""Where names are in an experiment file, for errors found later."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.common.entry import Entry


def places(fields: Mapping[str, Entry]) -> dict[str, str]:
    """Where names are that only robot or data can show to be wrong: `tie legs` -> `line 12, ties[0]`."""
    found: dict[str, str] = {}
    for item in fields["ties"].items() if "ties" in fields else ():
        name = item.mapping()["name"] if item.is_mapping else item
        found[f"tie {name.text()}"] = name.place
    for item in fields["keep"].items() if "keep" in fields else ():
        found[f"keep {item.text()}"] = item.place
    for key in ("logs", "validate"):
        for item in fields[key].items() if key in fields else ():
            payload = item.mapping().get("payload") if item.is_mapping else None
            several = [] if payload is None else payload.items() if payload.is_list else [payload]
            for one in several:
                found.setdefault(f"payload {one.text()}", one.place)
    return found
