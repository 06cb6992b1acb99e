"""The vector runner itself: what it prints, counts and returns, over files made here."""

import json

import pytest

from tests.vectors.__main__ import main
from tests.vectors.runner import Usage, run


def step(name, total, expected):
    return {
        "name": name,
        "input": {
            "preferences": {"*": {"min_replicas": 0, "max_replicas": None, "weight": 1}},
            "total_replicas": total,
            "available_clusters": ["m1", "m2"],
            "limited_capacity": {},
            "key": "default/web",
            "avoid_disruption": True,
            "keep_unschedulable": False,
            "current": None,
            "estimated_capacity": {},
        },
        "expected": {"plan": expected, "overflow": {}},
    }


@pytest.fixture
def folder(tmp_path):
    def write(name, *cases):
        (tmp_path / f"{name}.json").write_text(json.dumps({"subject": name, "notes": "", "cases": list(cases)}))
        return tmp_path

    return write


def told_by(path, differences=None):
    told = []
    totals = run(path, told.append, *([differences] if differences else []))
    return told, totals


def test_cases_run_through_the_product(folder):
    told, totals = told_by(folder("planner_steps", step("even", 4, {"m1": 2, "m2": 2})))
    assert told == ["planner_steps 1/1", "1 passed, 0 failed, 0 without adapter"]
    assert totals.failed == 0


def test_a_difference_is_listed_and_fails(folder, capsys):
    path = folder("planner_steps", step("even", 4, {"m1": 2, "m2": 2}), step("wrong", 4, {"m1": 4, "m2": 0}))
    assert main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "planner_steps 1/2"
    assert lines[1].startswith("  wrong: expected ")
    assert '"m1": 2' in lines[1]
    assert lines[-1] == "1 passed, 1 failed, 0 without adapter"


def test_whatever_the_product_raises_is_a_difference(folder):
    broken = step("broken", 4, {})
    del broken["input"]["key"]
    told, totals = told_by(folder("planner_steps", broken))
    assert told[1] == "  broken: KeyError: 'key'"
    assert totals.failed == 1


def test_files_nobody_adapts_are_counted(folder, capsys):
    path = folder("of_another_world", {"name": "a", "input": {}, "expected": {}})
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 0 failed, 1 without adapter"


def test_a_file_of_another_form_fails_with_a_clear_line(tmp_path):
    for text in ("{", "[]", '{"cases": [{"name": "x"}]}'):
        (tmp_path / "planner_steps.json").write_text(text)
        told, totals = told_by(tmp_path)
        assert told[1] == "  planner_steps.json: not a vector file"
        assert totals.failed == 1


def test_differences_on_purpose_are_counted_apart(folder, tmp_path):
    path = folder("planner_steps", step("even", 4, {"m1": 2, "m2": 2}), step("meant", 4, {"m1": 4, "m2": 0}))
    differences = tmp_path / "differences.toml"
    differences.write_text('[[difference]]\nfile = "planner_steps"\ncase = "meant"\nwhy = "M3"\n')
    told, totals = told_by(path, differences)
    assert told[0] == "planner_steps 1/2 (1 differ on purpose)"
    assert told[-1] == "1 passed, 0 failed, 0 without adapter"
    assert totals.on_purpose == 1


def test_a_difference_on_purpose_that_is_none_fails(folder, tmp_path):
    differences = tmp_path / "differences.toml"
    differences.write_text('[[difference]]\nfile = "planner_steps"\ncase = "even"\nwhy = "M3"\n')
    _, totals = told_by(folder("planner_steps", step("even", 4, {"m1": 2, "m2": 2})), differences)
    assert totals.failed == 1


def test_nothing_to_run_is_an_error_of_its_own(tmp_path, capsys):
    with pytest.raises(Usage):
        run(tmp_path, print)
    assert main([str(tmp_path / "missing")]) == 2
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
