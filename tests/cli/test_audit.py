from tests.audit.runs import edit_json, make_run
from tests.cli.commands import run_command


def test_audit_says_what_it_checked_and_exits_0(capsys, tmp_path):
    layout = make_run(tmp_path, "synthetic:8x6", steps=3)
    status, out, _ = run_command(capsys, "audit", layout.folder)
    assert status == 0
    assert out == f"{layout.folder}: all batches follow from their inputs: steps 0 to 2, 36 records\n"


def test_audit_of_a_prepared_run_without_a_batch_says_so(capsys, tmp_path):
    status, out, _ = run_command(capsys, "audit", make_run(tmp_path, "synthetic:8x6", steps=0).folder)
    assert (status, out) == (0, f"{tmp_path}: no batch yet, nothing to compare\n")


def test_audit_notes_what_a_killed_run_left(capsys, tmp_path):
    layout = make_run(tmp_path, "synthetic:8x6", steps=2, selected=3)
    layout.rollouts(2).write_text('{"task": "environ')
    status, out, _ = run_command(capsys, "audit", layout.folder)
    assert status == 0
    assert out.startswith("note: ")
    assert "step_2.jsonl, line 1: truncated" in out


def test_audit_exits_1_and_names_the_first_step_that_differs(capsys, tmp_path):
    layout = make_run(tmp_path, "synthetic:8x6", steps=4)
    for step in (3, 1):
        edit_json(layout.manifest(step), lambda manifest: manifest["picks"][0].update(score=0.5))
    status, _, err = run_command(capsys, "audit", layout.folder)
    assert status == 1
    assert err.startswith("error: step 1: pick 0 differs in score")
    assert err.count("\n") == 1


def test_audit_of_no_run_exits_2(capsys, tmp_path):
    status, _, err = run_command(capsys, "audit", tmp_path)
    assert status == 2
    assert "no run directory" in err
