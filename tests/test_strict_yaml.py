"""The YAML loader: plain data with lines, and no power for the file."""

import pytest

from dynid.common.entry import root_entry
from dynid.common.errors import InputError
from dynid.common.strict_yaml import parse_yaml, read_yaml

TEXT = """\
name: arm
joints:
  - {name: a, kind: revolute}
  - name: b
    mdh:
      d: 1e-3
flags: [true, yes, null, "5", 012]
"""


def test_data_are_plain_and_follow_yaml_1_2():
    assert parse_yaml(TEXT).plain() == {
        "name": "arm",
        "joints": [{"name": "a", "kind": "revolute"}, {"name": "b", "mdh": {"d": 0.001}}],
        "flags": [True, "yes", None, "5", 12],
    }


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", "1.e-3", "+.001"])
def test_scientific_notation_is_a_number(text):
    assert parse_yaml(f"x: {text}").plain() == {"x": 1e-3}


def test_lines_of_paths():
    joints = root_entry(parse_yaml(TEXT)).mapping()["joints"]
    second = list(joints.items())[1]
    assert joints.place == "line 2, joints"
    assert second.place == "line 4, joints[1]"
    assert second.at("mdh.d").place == "line 6, joints[1].mdh.d"
    assert second.at("nothing").place == "line 4, joints[1]"


def test_small_aliases_are_allowed_and_shared():
    assert parse_yaml("a: &x [1, 2]\nb: *x").plain() == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "line 2, column 4", "tag"),
        ("a: !own 3", "line 1, column 4", "tag"),
        ("a: 1\na: 2", "line 2, column 1", "given twice (first in line 1)"),
        ("a: .inf", "line 1, column 4", "not a finite number"),
        ("a: .nan", "line 1, column 4", "not a finite number"),
        ("a: 1e999", "line 1, column 4", "not a finite number"),
        ("a: [1,\n  2", "line 2", "not valid YAML"),
        ("a: b: c", "line 1, column 5", "not valid YAML"),
        ("? [a]\n: 3", "line 1", "cannot be a key"),
        ("a: &x [*x]", "line 1", "complete"),
        ("a: 1\n---\nb: 2", "line 2", "second YAML document"),
        ("[" * 5000, "line 1, column 101", "nested deeper"),
    ],
)
def test_refusals_name_line_and_column(text, place, said):
    with pytest.raises(InputError) as caught:
        parse_yaml(text, file="robot.yaml")
    assert caught.value.file == "robot.yaml"
    assert place in caught.value.place
    assert said in caught.value.text


def test_alias_bomb_is_refused_while_it_is_read():
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(InputError, match="100000 entries"):
        parse_yaml("a0: &a0 [1, 2, 3]\n" + "\n".join(levels))


def test_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dynid.common.strict_yaml.BYTE_LIMIT", 100)
    file = tmp_path / "large.yaml"
    file.write_text("a: " + "x" * 1000)
    with pytest.raises(InputError, match="limit of 100"):
        read_yaml(file)


def test_file_that_is_missing_or_not_utf8(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path / "no.yaml")
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"a: 1\nb: \xe9t\xe9\n")
    with pytest.raises(InputError, match="UTF-8") as caught:
        read_yaml(file)
    assert caught.value.place == "line 2"


def test_entry_names_unknown_key_with_line_and_nearest():
    root = root_entry(parse_yaml("name: a\nmesured: [b]"))
    with pytest.raises(InputError, match="did you mean 'measured'") as caught:
        root.fields(("name", "measured"))
    assert caught.value.place == "line 2, mesured"


def test_entry_refuses_other_kinds():
    fields = root_entry(parse_yaml("a: 5\nb: [1, 2]\nc: x\nd: [x, x]")).mapping()
    for read, name in (("text", "a"), ("texts", "a"), ("mapping", "b"), ("count", "c"), ("flag", "c")):
        with pytest.raises(InputError, match="expected"):
            getattr(fields[name], read)()
    with pytest.raises(InputError, match="listed twice"):
        fields["d"].texts()
    with pytest.raises(InputError, match="expected 3 entries"):
        fields["b"].vector(lambda entry: entry.count())


def test_a_forgotten_value_is_refused():
    with pytest.raises(InputError, match="no value"):
        root_entry(parse_yaml("name:\nx: 1")).fields(("name", "x"))
