"""What messages call the workers of a cluster."""

from __future__ import annotations

import pytest

from ringlet.cluster import WorkersJob
from ringlet.rendezvous.handshake import held_by
from ringlet.rendezvous.process_identity import ProcessIdentity

NAMES = tuple(f"/job:worker/task:{index}" for index in range(3))


@pytest.mark.parametrize(("ranks", "who"), [([0], "task:0"), ([2, 3], "task:1"), ([1, 5], "task:0 and /job:worker/")])
def test_ranks_are_told_as_the_workers_that_have_them(ranks, who):
    assert who in WorkersJob("a cluster", "", 6, NAMES).names_of(ranks)


def test_the_job_and_the_strategy_are_told_where_there_are_several():
    assert str(WorkersJob("a", "", 3, NAMES)) == "the 3 workers of the cluster"
    assert str(WorkersJob("a", "second", 3, NAMES, 2)) == (
        "the 3 workers of the cluster for strategy 2 of the program (RINGLET_JOB_ID 'second')"
    )


def test_a_task_that_is_taken_is_told_with_both_reasons_and_no_word_of_ranks():
    text = held_by([1], ProcessIdentity.of_this_process(), WorkersJob("a", "", 3, NAMES))
    assert text.startswith("/job:worker/task:1 is held by pid ")
    assert "two processes were started as this task, or another job" in text
    assert "rank" not in text


def test_jobs_of_other_clusters_strategies_and_launches_never_meet():
    jobs = [WorkersJob("a 1", "", 2), WorkersJob("a 2", "", 2), WorkersJob("b 1", "", 2), WorkersJob("a 1", "x", 2)]
    assert len({job.address(1000) for job in jobs}) == 4
