"""What `ringlet run` says to a command line that it cannot follow: one line, the cure in it, exit status 2."""

from __future__ import annotations

import resource
import sys

import pytest

from ringlet.launcher.command_line import main


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A folder with a script in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trained')", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return "train.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # arguments of `ringlet run`, part of the message
        ("", "the number of workers is missing. Write -n before the script: ringlet run -n 4 script.py"),
        ("2 train.py", "the number of workers is missing. Write -n before the script: ringlet run -n 2 train.py"),
        ("--replica 2 train.py", "unrecognized arguments: --replica; did you mean --replicas?"),
        ("train.py", "the number of workers is missing. Write -n before the script: ringlet run -n 4 train.py"),
        ("train.py -n 4", "-n must precede the script: ringlet run -n 4 train.py"),
        ("-n 4", "no script given. Write it last, with its arguments"),
        ("-n 0 train.py", "-n must be an integer of at least 1, got '0'"),
        ("-n -3 train.py", "-n must be an integer of at least 1, got '-3'"),
        ("-n two train.py", "-n must be an integer of at least 1, got 'two'"),
        ("-n 1001 train.py", "-n 1001 is too many: a job has at most 1000 workers"),
        ("-n 1000 --replicas 5 train.py", "5000 replicas in total: a job has at most 4096"),
        ("-n 2 --replicas 0 train.py", "--replicas must be an integer of at least 1, got '0'"),
        ("-n 2 --grace-seconds inf train.py", "--grace-seconds must be a non-negative number, got 'inf'"),
        ("-n 2 --grace-seconds soon train.py", "--grace-seconds must be a non-negative number, got 'soon'"),
        ("-n 2 --timeout -1 train.py", "--timeout must be a non-negative number, got '-1'"),
        ("-n 2 --restarts -1 train.py", "--restarts must be an integer of at least 0, got '-1'"),
        ("-n 2 --restarts often train.py", "--restarts must be an integer of at least 0, got 'often'"),
        ("-n 2 --no-restart 3,x train.py", "--no-restart must be an integer of at least 1, got 'x'"),
        ("-n 2 --bind socket train.py", "--bind must be none, core or numa, got 'socket'"),
        (
            "-n 900 --bind core train.py",
            "--bind core: 900 workers need 900 cores, one for each replica, ",
        ),
        ("-n 2 tain.py", "the script 'tain.py' was not found in "),
        ("-n 2 folder", "'folder' is a folder without __main__.py"),
        ("-n 2 python train.py", "omit 'python', which is implied: ringlet run -n 2 train.py"),
        ("-n 2 json", "'json' is a module, not a script: ringlet run -n 2 -m json"),
        ("-n 2 -m", "no module given after -m"),
        ("-n 2 -m train.py", "'train.py' is a script, not the name of a module. Omit -m"),
        ("-n 2 -m ./train", "'./train' is not the name of a module"),
        ("-n 2 -m no_such_module.part", "module 'no_such_module' was not found"),
    ],
)
def test_a_mistake_is_answered_in_one_line_with_the_cure(script, arguments, said, capsys):
    try:
        status = main(["run", *arguments.split()])
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("ringlet run: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_script_that_cannot_be_read_is_refused(script, capsys, monkeypatch):
    # As root every file can be read: so the system's answer is made up.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert main(["run", "-n", "2", script]) == 2
    assert capsys.readouterr().err == (
        "ringlet run: the script 'train.py' cannot be read: permission denied. Try chmod u+r train.py\n"
    )


def test_a_limit_of_the_system_is_named_and_nothing_is_left(launcher):
    file = launcher.folder / "train.py"
    file.write_text("", encoding="utf-8")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, {most}));"
    command = f"{limit} from ringlet.launcher.command_line import main; raise SystemExit(main())"
    job = launcher.start_command([sys.executable, "-c", command, "run", "-n", "30", str(file)]).end()
    assert job.status == 2
    assert job.errors == [
        "ringlet run: cannot start 30 workers (Too many open files): this user's limit of open files is too low. "
        "Raise it (ulimit -n), or start fewer workers"
    ]
    assert job.leaves_nothing()


def test_a_module_runs_as_under_python(launcher):
    (launcher.folder / "part").mkdir()
    (launcher.folder / "part" / "__main__.py").write_text("import sys; print(__name__, sys.argv[1:])", encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "1", "-m", "part", "-m", "x"]
    assert launcher.start_command(command).end().lines == ["[w0] __main__ ['-m', 'x']"]


def test_two_dashes_may_stand_before_the_script(launcher):
    (launcher.folder / "train.py").write_text("import sys; print(sys.argv[1:])", encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "1", "--", "train.py", "--", "x"]
    assert launcher.start_command(command).end().lines == ["[w0] ['--', 'x']"]
