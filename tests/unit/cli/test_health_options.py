"""How members' health is watched, as options: KubeAdmiral's names, and what they change."""

import inspect

import pytest

from argosy.cli.commands.controllers import controllers
from argosy.cli.commands.up import up
from argosy.cli.options.health import health_options
from argosy.cli.output.failures import Failure
from argosy.control.timings import Timings


@pytest.mark.parametrize("command", [controllers, up])
def test_the_defaults_are_those_of_the_timings(command):
    names = ("cluster_health_check_period", "cluster_status_threshold", "cluster_join_timeout")
    defaults = [inspect.signature(command).parameters[name].default for name in names]
    assert health_options(*defaults).applied(Timings()) == Timings()


def test_they_are_applied_and_handed_on():
    chosen = health_options("20s", "1m", "5m")
    timings = chosen.applied(Timings())
    assert (timings.health_period, timings.health_threshold, timings.join_timeout) == (20.0, 60.0, 300.0)
    given = chosen.arguments()
    assert given[::2] == ["--cluster-health-check-period", "--cluster-status-threshold", "--cluster-join-timeout"]
    assert health_options(*given[1::2]) == chosen


@pytest.mark.parametrize("values", [("0.5s", "1m", "5m"), ("10", "1m", "5m"), ("10s", "-1m", "5m")])
def test_what_makes_no_sense_is_refused(values):
    with pytest.raises(Failure) as failure:
        health_options(*values)
    assert failure.value.message.startswith("--cluster-")


def test_a_member_that_died_is_unready_within_a_minute():
    timings = Timings()
    assert timings.unready_after <= 60.0
    assert timings.health_recheck + timings.probe_timeout <= 10.0, "and told to be silent within ten seconds"
