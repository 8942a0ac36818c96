"""The command line as a process: `python -m dynid`, and the script `dynid`."""

from __future__ import annotations

import atexit
import os
import sys


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
    # Read when NumPy is imported. Matrices are small here: threads of BLAS would only wait for each other,
    # and they wait by computing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dynid.cli import main

    try:
        main(prog_name="dynid")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        raise


if __name__ == "__main__":
    run()
