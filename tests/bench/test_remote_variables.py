"""Variables over TCP are timed beside the same in shared memory."""

import pytest

from bench import remote_variables


@pytest.mark.slow
def test_each_access_is_timed_in_both_ways(capsys):
    remote_variables.main(["--rounds", "1", "--milliseconds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[-6:]] == [
        [verb, *size] for size in (["8", "B"], ["1", "MiB"], ["1000", "rows"]) for verb in ("push", "pull")
    ]
    assert all(line.endswith(" x") for line in lines[-6:])
