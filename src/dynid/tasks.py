"""What an experiment file asks for, each part into its own folder; the command line and the studio call this.

identify -> the result folder; compare, export -> beside it; excite -> `designing` of `excitation/design.py`.
Each function checks what it can before a long run, and replaces only an older folder of its own kind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment
    from dynid.exporters import Export
    from dynid.report.output import ResultFolder
    from dynid.statistics.comparison import Comparison

Progress = Callable[[str, float], None]


def default_out(name: str) -> Path:
    """`results/<name>`; if `name` is a path, only its file name is used."""
    return Path("results") / (Path(name).name or "result")


def result_folder(asked: Experiment) -> Path:
    """Where the result of an experiment is written."""
    return default_out(asked.name) if asked.out is None else Path(asked.out)


@contextlib.contextmanager
def identifying(asked: Experiment) -> Iterator[ResultFolder]:
    """Lock the result folder, and refuse what could only fail after the identification."""
    from dynid.report.output import claimed

    check_followers(asked)
    with claimed(result_folder(asked)) as folder:
        yield folder


def check_followers(asked: Experiment) -> None:
    """Refuse a comparison with what is no result, and unknown formats of an export."""
    if asked.compare is not None:
        from dynid.report.json_file import read_result

        for other in asked.compare.results:
            read_result(other)
    if asked.export is not None:  # most identifications export nothing, and importing exporters takes time
        from dynid.exporters import check_formats

        check_formats(asked.export.to, asked.export.replay)


def compared(
    experiments: Sequence[Experiment],
    progress: Progress | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> tuple[Comparison, Path]:
    """Make and write the comparison that the first experiment asks for; it and its folder.

    Args:
        experiments: Others only where fits are compared, not results.
        progress: Called with a stage and the fraction of it done.
        jobs, cluster: Processes that fit folds, or the address of a Dask scheduler.
    """
    from dynid.experiment.tasks import CompareSettings
    from dynid.motion.settings import LogEntry
    from dynid.report.comparison import FILES, comparison_files
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.validation.results import compare_results
    from dynid.validation.targets import compare_fits

    asked, result = experiments[0], result_folder(experiments[0])
    settings = asked.compare or CompareSettings()
    folder = result.with_name(f"{result.name}_compare") if settings.out is None else Path(settings.out)
    with claimed_folder(folder, FILES) as path:
        if settings.results:
            results = [*([result] if asked.logs else []), *map(Path, settings.results)]
            logs = [LogEntry(log) for log in settings.logs]
            payloads = settings.payloads or None
            comparison = compare_results(results, logs, _instead(asked), payloads, settings.speeds)
        else:
            comparison = compare_fits(experiments, settings, jobs=jobs, cluster=cluster, progress=progress)
        replace_folder(path, comparison_files(comparison))
    return comparison, folder


def exported(asked: Experiment) -> Export:
    """Write the formats that an experiment asks for, of its own result or of the one that it names."""
    from dynid.common.errors import InputError
    from dynid.exporters import export

    settings = asked.export
    if settings is None:
        raise InputError("no format is named", file=asked.file, remedy="add `export: [urdf]`")
    result = result_folder(asked) if settings.result is None else Path(settings.result)
    beside = (result if result.is_dir() else result.parent).resolve()
    return export(
        result,
        settings.to,
        beside.with_name(f"{beside.name}-export") if settings.out is None else settings.out,
        _instead(asked),
        not_physical=settings.not_physical,
        payload=settings.payload,
        replay=settings.replay,
    )


def _instead(asked: Experiment) -> str | None:
    """The robot that replaces that of finished results; one that is identified is their own."""
    return None if asked.logs else str(asked.robot) or None
