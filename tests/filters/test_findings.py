import json

import numpy as np
import pytest

from envsched.errors import StateError
from envsched.filters import Findings, Mask
from envsched.runtime.inspection import inspect_pool
from tests.runtime.pools import COUNTER_TOOLS, counter_pool

YES, THREE = "def check_func(s):\n    return True", "def check_func(s):\n    return s['count'] == 3"


@pytest.mark.parametrize(("checks", "floor", "masked"), [([YES], 1.0, True), ([YES, THREE], 0.5, False)])
def test_a_report_gives_masks_and_floors(tmp_path, checks, floor, masked):
    pool = counter_pool(checks, COUNTER_TOOLS[:2])
    report = tmp_path / "report.json"
    report.write_text(json.dumps(inspect_pool(pool).to_json()))
    findings = Findings.read(report, pool)
    assert findings.mask.rows.tolist() == [masked]
    assert findings.floors.tolist() == [floor]
    assert findings.floor_of(pool) == {"task": floor}
    with pytest.raises(StateError, match="belongs to the pool"):
        Findings.read(report, counter_pool([THREE]))


def test_the_digest_follows_floors_and_masks_alone(tmp_path):
    pool, report = counter_pool([YES, THREE], COUNTER_TOOLS[:2]), tmp_path / "report.json"
    content = inspect_pool(pool).to_json()

    def digest_of(**changes):
        report.write_text(json.dumps(content | changes))
        return Findings.read(report, pool).digest

    assert digest_of() == digest_of(protections=[]) != digest_of(floors={"task": 0.25})
    assert digest_of(masks={"task": "so"}) != digest_of()
    for altered in ({"floors": {"task": "0.5"}}, {"floors": {"nobody": 0.5}}, {"masks": ["task"]}, {"masks": {"task": 3}}):
        with pytest.raises(StateError, match="altered"):
            digest_of(**altered)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"fingerprint": "x"}'])
def test_a_file_that_is_no_report_is_refused(tmp_path, content):
    report = tmp_path / "report.json"
    report.write_text(content)
    with pytest.raises(StateError, match="is not what"):
        Findings.read(report, counter_pool())
    with pytest.raises(StateError, match="No such file"):
        Findings.read(tmp_path / "absent.json", counter_pool())


def test_masks_join_with_all_their_reasons():
    joined = Mask.of({0: "a", 2: "b"}, 4).union([Mask.of({2: "c", 3: "d"}, 4)])
    assert joined.rows.tolist() == [True, False, True, True]
    assert joined.reasons == {0: "a", 2: "b; c", 3: "d"}
    assert np.array_equal(Mask.of({}, 2).rows, [False, False])
