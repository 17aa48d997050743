"""The number of cores under an affinity mask and the quotas of control groups, told by files."""

from __future__ import annotations

import os

import pytest

from ringlet.devices import count_cores, visible_cores

UNLIMITED = "max 100000"


@pytest.mark.parametrize(
    ("quota", "affinity", "count"),
    [
        # cpu.max         mask  cores
        ("200000 100000", 8, 2),
        ("150000 100000", 8, 2),
        ("10000 100000", 8, 1),
        ("0 100000", 8, 1),
        ("800000 100000", 2, 2),
        (UNLIMITED, 8, 8),
        ("max", 8, 8),
        ("", 8, 8),
        ("nonsense 100000", 8, 8),
        ("200000 0", 8, 8),
    ],
)
def test_version_2_rounds_the_quota_up(quota, affinity, count):
    files = {"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": quota}
    assert count_cores(affinity, files.get).count == count


@pytest.mark.parametrize(("quota", "count"), [("300000", 3), ("250000", 3), ("-1", 8)])
@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_version_1_rounds_the_quota_up(mount, quota, count):
    files = {
        "/proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a\n",
        f"/sys/fs/cgroup/{mount}/a/cpu.cfs_quota_us": quota,
        f"/sys/fs/cgroup/{mount}/a/cpu.cfs_period_us": "100000",
    }
    assert count_cores(8, files.get).count == count


def test_the_least_quota_on_the_way_up_binds():
    files = {
        "/proc/self/cgroup": "0::/a/b",
        "/sys/fs/cgroup/a/b/cpu.max": "400000 100000",
        "/sys/fs/cgroup/a/cpu.max": "200000 100000",
        "/sys/fs/cgroup/cpu.max": UNLIMITED,
    }
    assert count_cores(8, files.get).reason == "CPU quota of 2 cores (/sys/fs/cgroup/a/cpu.max), affinity mask of 8"


def test_a_container_finds_its_quota_at_the_root():
    files = {"/proc/self/cgroup": "0::/../../outside", "/sys/fs/cgroup/cpu.max": "100000 100000"}
    assert count_cores(8, files.get).count == 1


def test_without_files_the_affinity_mask_counts():
    cores = count_cores(6, {}.get)
    assert (cores.count, cores.reason) == (6, "affinity mask of 6")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinity masks")
def test_this_process_sees_at_most_its_affinity_mask():
    assert 1 <= visible_cores().count <= len(os.sched_getaffinity(0))
