"""The command line as a process: `python -m dynid`, and the script `dynid`."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys

_NEW_OBJECTS = 500_000  # more than an identification makes; Python's own choice is 700

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of options in malloc.h
_KEPT_ARRAY, _KEPT_MEMORY = 1 << 25, 1 << 26  # bytes; larger arrays are in files (`common/paged.py`)


def collect_rarely() -> None:
    """Search seldom for cycles of unreachable objects.

    The many objects of loaded modules would be searched in vain each time. Large arrays are in no cycle.
    """
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])


def keep_freed() -> None:
    """Keep the memory of freed arrays for the next ones, up to a limit (GNU C library only).

    Otherwise the system takes the pages of each larger array away and clears them again for the next.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _KEPT_ARRAY)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_MEMORY)


def run() -> None:
    """Run a command, then leave the process at once: the system frees all memory together.

    Python would take apart every module and object by itself, which takes longer than `dynid --help`.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (until the process ends)
        else:  # a pipe on Windows cannot take every sign that we print
            getattr(sys, name).reconfigure(errors="replace")
    code = 1  # of an error that nobody handles

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # what is registered first runs last, when all other packages have ended
    collect_rarely()
    keep_freed()
    # Read when NumPy is imported. Matrices are small here: threads of BLAS would only wait for each other,
    # and they wait by computing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from dynid.cli import main

        main(prog_name="dynid")
    except KeyboardInterrupt:  # before a command runs, which says what is kept
        code = 130
        sys.stderr.write("error: interrupted: nothing was changed; run the same command again\n")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        raise


if __name__ == "__main__":
    run()
