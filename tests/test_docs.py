"""What a reader is told is true: commands, links, Python and YAML of README and docs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from click import Context

from dynid.campaign.file import read_campaign
from dynid.cli import main
from dynid.experiment import file as experimentfile
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file import robot_file as robotfile
from dynid.simulation import simulation_file
from dynid.simulation.simulation_file import read_simulation

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[a-z ]+)(?:: (?P<file>\S+))? -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)

# What a fragment of a robot file or an experiment file is added to.
ROBOT = """
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper_arm, mdh: {alpha: pi/2}}
  - {name: elbow, kind: revolute, parent: upper_arm, child: forearm, mdh: {d: 0.4}}
drive: {"*": [Ia, Fv, Fs, Off]}
"""
EXPERIMENT = "robot: arm.yaml\nlogs: [run.csv]\n"


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Mark and text of the page's code blocks in a language."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [(one["mark"] or "", one["text"]) for one in found if one["language"] == language]


def pages_with(language: str, mark: str = "") -> list[Path]:
    return [page for page in PAGES if any(mark in one for one, _ in blocks(page, language))]


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [text.strip() for _, text in blocks(ROOT / "README.md", "sh")]
    ran = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if "pytest" in line]
    assert len(ran) == 1
    assert ran[0] in commands
    assert "\n" not in ran[0]
    assert ran[0] in (ROOT / "CONTRIBUTING.md").read_text()


def test_first_command_of_the_readme_is_one_line_that_ends_in_the_demo() -> None:
    first = blocks(ROOT / "README.md", "sh")[0][1].strip()
    assert "\n" not in first
    assert first.endswith(".venv/bin/dynid demo ur5")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_internal_links_resolve(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{relative(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{relative(page)}: {target}"


def anchors(page: Path) -> set[str]:
    """Identifiers that the documentation's headings get."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in HEADING.findall(text)]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def run_python(page: Path) -> None:
    """Blocks of a page build on each other, as a reader would type them."""
    names: dict[str, object] = {"__name__": "page"}
    for mark, text in blocks(page, "python"):
        if mark != "runnable":  # others are in test_prepared_blocks.py
            continue
        exec(compile(text, relative(page), "exec"), names)  # noqa: S102  (our own pages)


@pytest.mark.parametrize("page", pages_with("python", "runnable"), ids=relative)
def test_python_marked_runnable_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(page)


@cache
def dualv() -> Mechanism:
    return load_robot("dualv")


@pytest.mark.parametrize("page", pages_with("yaml"), ids=relative)
def test_yaml_examples_are_read(page: Path, tmp_path: Path) -> None:
    """Each block says what it is: a file, or a part that is added to a small one."""
    shutil.copy(str(files("dynid.robots") / "ur5.urdf"), tmp_path / "arm.urdf")
    for _, text in blocks(page, "xml"):
        (tmp_path / "robot.xml").write_text(text, encoding="utf-8")
        load_robot(tmp_path / "robot.xml")
    for i, (mark, text) in enumerate(blocks(page, "yaml")):
        kind, _, part = mark.partition(" ")
        assert kind in ("robot", "experiment", "simulation", "campaign"), f"unmarked YAML in {relative(page)}"
        assert part in ("", "part")
        start = (ROBOT if kind == "robot" else EXPERIMENT) if part else ""
        file = tmp_path / f"example{i}.yaml"
        file.write_text(start + text, encoding="utf-8")
        if kind == "robot":
            load_robot(file)
        elif kind == "simulation":
            read_simulation(file, dualv())
        elif kind == "campaign":
            read_campaign(file)
        else:
            experimentfile.load_experiment(file, need_logs=False)


def test_counts_stated_for_the_two_axis_arm(tmp_path: Path) -> None:
    from dynid.info import describe

    page = ROOT / "docs" / "howto" / "robot_file.md"
    file = tmp_path / "two_axis.yaml"
    file.write_text(blocks(page, "yaml")[0][1])
    info = describe(load_robot(file))
    assert f"{info.n_standard} standard parameters make {info.n_base} base parameters" in page.read_text()
    assert "MX_upper_arm_R = MX_upper_arm + l1 M_forearm" in [one.grouping for one in info.base]


def test_files_named_in_the_recipes_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {name for name in re.findall(r"`((?:src|tests|docs)/[^`\s]+)`", text) if "NAME" not in name}
    assert len(named) > 8
    for name in named:
        assert (ROOT / name).exists(), name
    for registry, file in re.findall(r"in `([A-Z]+)` of `([^`]+)`", text):
        assert re.search(rf"^{registry}\b.* = ", (ROOT / file).read_text(), re.M), (registry, file)


def test_every_folder_and_module_has_its_place_in_the_layout() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w*]+\.py)`", text)
    for file in (ROOT / "src/dynid").glob("[!_]*.py"):
        assert any(fnmatchcase(file.name, name) for name in named), f"{file.name} has no job"
    for folder in (ROOT / "src/dynid").glob("*/__init__.py"):
        assert re.search(rf"`{folder.parent.name}/?`|src/dynid/{folder.parent.name}/", text), folder


def test_defaults_of_filter_and_mask_are_those_of_the_code() -> None:
    from dynid.motion import plan, spectrum

    text = (ROOT / "docs" / "howto" / "filter_and_mask.md").read_text()
    assert f"{spectrum._BANDWIDTHS:g} bandwidths" in text
    for sigmas, share, most in (plan._REVERSAL, plan._REST):
        assert re.search(f"{sigmas:g} sigma.*at least {100 * share:g} % and at most {100 * most:g} %", text)


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("experiment_file.md", experimentfile._KEYS),
        ("robot_file.md", robotfile._KEYS),
        ("simulation_file.md", simulation_file._KEYS),
    ],
)
def test_every_key_of_a_file_is_in_its_reference(page: str, keys: tuple[str, ...]) -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs/reference" / page).read_text(encoding="utf-8"), re.M)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(keys) <= explained


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    first, *rest = text.split("\n## ")
    sections = {part.partition("\n")[0]: part for part in rest}
    for name, command in main.commands.items():
        assert f"dynid {name}" in first, name
        told = set(re.findall(r"[`\[](--[a-z-]+)", sections.get(name, first)))
        own = {one for option in command.params for one in option.opts if one.startswith("--")}
        assert own <= told, (name, own - told)
        assert name not in sections or told <= own, (name, told - own)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=relative)
def test_commands_of_the_pages_are_those_of_the_program(page: Path) -> None:
    """With all their options; an option that is named without its argument is only mentioned."""
    lines = [line for _, text in blocks(page, "sh") for line in text.replace("\\\n", " ").splitlines()]
    typed = [match for line in lines for match in re.findall(r"\bdynid ([a-z][^#&|;]*)", line.split(" #")[0])]
    mentioned = re.findall(r"`dynid ([a-z][^`\n]*)`", BLOCK.sub("", page.read_text(encoding="utf-8")))
    for line in [*typed, *(one for one in mentioned if not re.search(r"--\w+$", one))]:
        name, *arguments = shlex.split(line)
        command = main.commands[name]
        command.make_parser(Context(command)).parse_args(arguments)


def test_pages_are_all_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in navigation


GENERATED = ("reference/api.md", "reference/warnings.md")  # lists of names and codes, to look things up


def test_long_pages_have_a_picture() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        long = len(text.split()) > 1500 and str(page.relative_to(ROOT / "docs")) not in GENERATED
        assert not long or "![" in text, page


def test_papers_are_those_of_the_citation_file() -> None:
    cited = re.findall(r'^  - type: .*\n    title: "(.+)"$', (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    text = (ROOT / "docs/notation.md").read_text(encoding="utf-8")
    assert len(cited) == 5
    assert all(f"*{title}*" in text for title in cited)


def test_documentation_loads_nothing_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "http" not in settings


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        ("serial_ur5.py", "Fv_elbow_joint"),
        ("wrench_serial6.py", "YY_B1: not identifiable"),
        ("online_payload.py", "change found"),
    ],
)
def test_example_runs(example: str, shown: str) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "examples" / example], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert shown in run.stdout


def test_coloured_noise_example_shows_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import coloured_noise

    # Ten records give 220 intervals, which are not independent: a few percent of scatter.
    white, _ = coloured_noise.coverage(None, draws=10)
    coloured, total = coloured_noise.coverage(0.98, draws=10)
    assert total == 220
    assert white["classical"] > 0.88
    assert coloured["classical"] < 0.70
    assert min(white["cluster"], coloured["cluster"]) > 0.88


def test_every_extra_has_code_behind_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    extras = project["optional-dependencies"]
    for name, packages in extras.items():
        if name not in ("all", "dev"):
            for package in packages:
                module = re.split(r"[\[<>=]", package)[0].replace("-", "_")
                assert re.search(rf"^\s*(import|from) {module}\b", sources, re.M), f"{name}: {module}"
    assert extras["all"] == [f"dynid[{','.join(one for one in extras if one not in ('all', 'dev'))}]"]
