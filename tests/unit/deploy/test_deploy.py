"""The container image file and the Helm chart hold what they say they hold; real helm has its say in tests/real."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from argosy import __version__

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "argosy"
MADE = runpy.run_path(str(ROOT / "scripts" / "chart.py"))["files"]()
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_charts_files_are_what_argosy_installs(name):
    assert (CHART / name).read_text() == MADE[name], "run scripts/chart.py"


def test_the_chart_has_no_files_that_nobody_makes():
    there = {f"{path.parent.name}/{path.name}" for folder in ("crds", "files") for path in (CHART / folder).iterdir()}
    assert there == set(MADE)


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_every_value_is_documented():
    lines = (CHART / "values.yaml").read_text().splitlines()
    values = yaml.safe_load("\n".join(lines))
    undocumented = {"resources", "podAnnotations", "podLabels", "nodeSelector", "tolerations", "priorityClassName"}
    for name in values.keys() - undocumented:
        [at] = [number for number, line in enumerate(lines) if line.startswith(f"{name}:")]
        assert lines[at - 1].startswith("#") or any(line.startswith("  #") for line in lines[at + 1 : at + 3]), name


def test_the_image_copies_what_exists_and_its_context_has_it():
    ignored = (ROOT / "deploy" / "Containerfile.dockerignore").read_text().splitlines()
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", CONTAINERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source


def test_the_image_is_pinned_checks_hashes_and_is_not_roots():
    stages = re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)
    [tag] = re.findall(r"^ARG PYTHON=(\S+)$", CONTAINERFILE, re.MULTILINE)
    assert stages == ["python:${PYTHON}"] * 2
    assert re.fullmatch(r"3\.\d+\.\d+-slim-\w+", tag)
    assert "--require-hashes -r requirements.lock" in CONTAINERFILE
    assert re.findall(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE) == [("65532", "65532")]
