"""Where the peers' benchmark scripts are, and their shared robot and trajectory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, os.environ.get("BENCH_THREADS", "1"))

FOLDER = Path(os.environ.get("DYNID_PEERS", Path(__file__).resolve().parents[2] / "shared" / "bench"))
THREADS = int(os.environ.get("BENCH_THREADS", "1"))


def load():
    """The peers' `_common` module: urdf(), trajectory(), args(), emit()."""
    if not FOLDER.is_dir():
        raise SystemExit(f"no peer benchmarks at {FOLDER}; set DYNID_PEERS to their folder")
    sys.path.insert(0, str(FOLDER))
    import _common

    return _common
