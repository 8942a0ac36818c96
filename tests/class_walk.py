"""Print the public classes whose methods run, generated ones included, when a serial arm is identified.

python -m tests.class_walk
"""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType

import dynid
from dynid.pipeline import identify
from dynid.simulation.demo import built_in_experiment

ROOT = str(Path(dynid.__file__).parent)


def walked() -> set[str]:
    """Classes met by `identify("puma560", log)` with default settings, in all threads."""
    log = built_in_experiment("puma560", seed=0).logs[0]
    # A quarter of the log meets more classes than all of it: likely causes of its residuals are searched.
    log = replace(log, segments=((0, 2500),))
    methods: dict[CodeType, bool] = {}
    kinds: set[type] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in methods:
            methods[code] = _is_method(code)
        if methods[code]:
            first = frame.f_locals[code.co_varnames[0]]
            kinds.add(first if isinstance(first, type) else type(first))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        identify("puma560", log)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = (kind for kind in kinds if kind.__module__.startswith("dynid."))
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in ours if not kind.__name__.startswith("_")}


def _is_method(code: CodeType) -> bool:
    """Whether it is a method of this package, or one that `dataclass` generated."""
    ours = code.co_filename.startswith(ROOT) or code.co_filename == "<string>"
    # `__create_fn__` defines a dataclass when its module is first imported: no method of it runs.
    named = code.co_argcount > 0 and code.co_varnames[0] in ("self", "cls")
    return ours and named and code.co_name != "__create_fn__"


if __name__ == "__main__":
    print("\n".join(sorted(walked())))
