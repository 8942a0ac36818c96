"""Free motions of robots on locked cables, as `dynid excite`, `simulate`, `rehearse` and `demo` use them."""

from __future__ import annotations

from dynid.cases.free_motion.excitation import SUBJECT, excite_free
from dynid.cases.free_motion.excitation_files import FREE_FILES, free_files, free_summary, free_words
from dynid.cases.free_motion.simulation import FreeSimulated, free_logs, rehearsed, simulate_free, write_free
from dynid.excitation.case_motions import CaseMotions
from dynid.experiment.tasks import OF_SERIES

FREE_MOTIONS = CaseMotions(
    subject=SUBJECT,
    unused=OF_SERIES,
    unused_engine=("engine", "feedback"),
    search=excite_free,
    file_names=FREE_FILES,
    files=free_files,
    summary=free_summary,
    headline=free_words,
    simulate=simulate_free,
    write=write_free,
    words=FreeSimulated.described,
    noise=FreeSimulated.noise,
    rehearse=rehearsed,
    demo=free_logs,
)
