import pytest

from bench import limits
from bench.native import NativeError, run

LATENCIES = limits.Latencies(line_transfer=1e-7, futex_wake=1e-5, switch=1e-6)


def test_in_place_reads_and_writes_every_buffer_at_the_update_bandwidth():
    assert limits.limit_seconds("in_place", 4, 100, {"update": 200.0}) == 4.0


def test_out_of_place_moves_the_same_bytes_at_the_copy_bandwidth():
    assert limits.limit_seconds("out", 4, 100, {"copy": 400.0}) == 2.0


def test_a_shared_result_is_read_from_all_ranks_and_written_once():
    assert limits.limit_seconds("shared", 4, 100, {"read": 400.0, "write": 50.0}) == 3.0


def test_reads_that_overlap_writes_lower_the_limit_of_a_shared_result():
    bandwidths = {"read": 400.0, "write": 50.0, "reduce": 250.0}
    assert limits.limit_seconds("shared", 4, 100, bandwidths) == 2.0


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
    assert probe.bandwidths("in_place", 2, 1000) == {"update": 2e9}
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
        ("shared", ["read:4000", "write:1000", "reduce4:5000"]),
    ],
)
def test_each_variant_asks_for_its_own_working_set(tmp_path, variant, asked):
    limits.Probe(fake_probe(tmp_path)).bandwidths(variant, 4, 1000)
    lines = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[1] for line in lines] == asked


def test_one_core_has_no_transfers_between_cores(tmp_path):
    latencies = limits.Probe(fake_probe(tmp_path)).latencies()
    assert (latencies.line_transfer, latencies.switch) == (float("inf"), pytest.approx(5e-7))


def test_a_program_that_fails_is_quoted(tmp_path):
    program = tmp_path / "probe"
    program.write_text("#!/bin/sh\necho the result differs >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(NativeError, match=r"status 3:\nthe result differs"):
        run(program, [])
