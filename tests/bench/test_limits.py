import pytest

from bench import limits, traffic
from bench.native import NativeError, run

LATENCIES = limits.Latencies(line_transfer=1e-7, futex_wake=1e-5, switch=1e-6)


def test_in_place_reads_and_writes_every_buffer_at_the_update_bandwidth():
    assert limits.limit_seconds("in_place", 4, 100, {("update", 400): 200.0}) == 4.0


def test_out_of_place_moves_the_same_bytes_at_the_copy_bandwidth():
    assert limits.limit_seconds("out", 4, 100, {("copy", 800): 400.0}) == 2.0


def test_a_shared_result_is_read_from_all_ranks_and_written_once():
    bandwidths = {("read", 500): 400.0, ("write", 500): 50.0, ("reduce4", 500): 100.0}
    assert limits.limit_seconds("shared", 4, 100, bandwidths) == 3.0


def test_reads_that_overlap_writes_lower_the_limit_of_a_shared_result():
    bandwidths = {("read", 500): 400.0, ("write", 500): 50.0, ("reduce4", 500): 250.0}
    assert limits.limit_seconds("shared", 4, 100, bandwidths) == 2.0


def moved(collective, variant, num_ranks=4, size=800):
    """Bytes that a collective of buffers of 800 bytes moves, whichever way it goes, and the largest working set."""
    all_ways = traffic.ways(collective, variant, num_ranks, size)
    assert len({sum(step.moved for step in way) for way in all_ways}) == 1
    return sum(step.moved for step in all_ways[0]), max(step.working_set for way in all_ways for step in way)


@pytest.mark.parametrize(
    # collective, variant, bytes read and written by 4 ranks whose larger buffer has 800
    ("collective", "variant", "expected"),
    [
        ("all_reduce", "in_place", 3200 + 3200),
        ("all_reduce", "out", 3200 + 3200),
        ("all_reduce", "shared", 3200 + 800),
        ("reduce", "out", 3200 + 800),
        ("reduce_scatter", "out", 3200 + 800),
        ("reduce_scatter", "in_place", 3200 + 800),
        ("all_gather", "shared", 800 + 800),
        ("all_gather", "out", 800 + 3200),
        ("all_gather", "in_place", 800 + 2400),
        ("gather", "out", 800 + 800),
        ("gather", "in_place", 600 + 600),
        ("scatter", "shared", 800 + 800),
        ("broadcast", "shared", 800 + 800),
        ("broadcast", "out", 800 + 3200),
        ("broadcast", "in_place", 800 + 2400),
        ("all_to_all", "out", 3200 + 3200),
        ("collective_permute", "shared", 3200 + 3200),
        ("exclusive_scan", "out", 2400 + 3200),
        ("exclusive_scan", "in_place", 2400 + 3200),
    ],
)
def test_what_a_collective_moves(collective, variant, expected):
    assert moved(collective, variant)[0] == expected


@pytest.mark.parametrize("collective", traffic.COLLECTIVES)
@pytest.mark.parametrize("num_ranks", [2, 3, 8, 9, 16])
def test_no_collective_touches_more_than_its_buffers(collective, num_ranks):
    for variant in traffic.variants_of(collective):
        total, working_set = moved(collective, variant, num_ranks, 800 * num_ranks)
        assert working_set <= total


@pytest.mark.parametrize("num_ranks", [8, 9])
def test_one_loop_reads_or_writes_at_most_eight_buffers(num_ranks):
    kinds = {
        step.kind
        for collective in traffic.COLLECTIVES
        for variant in traffic.variants_of(collective)
        for way in traffic.ways(collective, variant, num_ranks, 800)
        for step in way
    }
    combined = {"reduce8", "fold8", "spread7", "spread8"} if num_ranks == 8 else {"spread8"}
    assert kinds == {"update", "copy", "read", "write"} | combined


@pytest.mark.parametrize(
    # ranks, cores, seconds
    ("ranks", "cores", "seconds"),
    [(1, 2, 0.0), (2, 2, 1e-7), (3, 2, 1e-6), (4, 2, 1e-6), (8, 2, 3e-6), (2, 1, 1e-6), (8, 16, 1e-7)],
)
def test_the_latency_floor_is_a_line_transfer_or_the_switches_of_a_core(ranks, cores, seconds):
    assert limits.latency_floor(ranks, cores, LATENCIES) == pytest.approx(seconds)


def fake_probe(tmp_path):
    """A probe of which `wide` is twice as fast as `narrow`, and that writes down what it was asked."""
    program = tmp_path / "probe"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/asked\n'
        'echo \'{"bandwidth": [{"loops": [{"loop": "wide", "bytes_per_second": 2e9},'
        ' {"loop": "narrow", "bytes_per_second": 1e9}]}], "latency":'
        ' {"line_transfer": null, "futex_wake": null, "switch": 500}}\'\n'
    )
    program.chmod(0o755)
    return program


def test_the_fastest_loop_counts_and_is_named(tmp_path):
    probe = limits.Probe(fake_probe(tmp_path))
    assert probe.bandwidths("in_place", 2, 1000) == {("update", 2000): 2e9}
    assert probe.best_loops == {("update", 2000, 2): "wide"}


def test_a_repeated_question_tries_only_the_loops_that_did_best(tmp_path):
    probe = limits.Probe(fake_probe(tmp_path))
    probe.bandwidths("in_place", 2, 1000)
    probe.bandwidths("in_place", 2, 1000)
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert "--loops  " in first
    assert "--loops wide,narrow " in second


@pytest.mark.parametrize(
    # variant, kinds and working sets
    ("variant", "asked"),
    [
        ("in_place", ["update:4000"]),
        ("out", ["copy:8000"]),
        ("shared", ["read:5000", "write:5000", "reduce4:5000"]),
    ],
)
def test_each_variant_asks_for_its_own_working_set(tmp_path, variant, asked):
    limits.Probe(fake_probe(tmp_path)).bandwidths(variant, 4, 1000)
    lines = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[1] for line in lines] == asked


def test_a_bandwidth_that_several_collectives_need_is_measured_once(tmp_path):
    limits.Probe(fake_probe(tmp_path)).measure([("copy", 1000), ("copy", 1000)], 2)
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


def test_one_core_has_no_transfers_between_cores(tmp_path):
    latencies = limits.Probe(fake_probe(tmp_path)).latencies()
    assert (latencies.line_transfer, latencies.switch) == (float("inf"), pytest.approx(5e-7))


def test_latencies_are_written_for_people():
    assert str(LATENCIES) == "line transfer 100 ns, futex wake 10.0 us, switch 1.00 us"


def test_a_program_can_be_given_variables(tmp_path, monkeypatch):
    program = tmp_path / "probe"
    program.write_text('#!/bin/sh\necho "\\"$KEPT $GIVEN\\""\n')
    program.chmod(0o755)
    monkeypatch.setenv("KEPT", "old")
    assert run(program, [], environment={"GIVEN": "new"}) == "old new"


def test_a_program_that_fails_is_quoted(tmp_path):
    program = tmp_path / "probe"
    program.write_text("#!/bin/sh\necho the result differs >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(NativeError, match=r"status 3:\nthe result differs"):
        run(program, [])
