"""What the reader of checks makes of the forms that checks are written in; each line is a form, its kind and its traits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.pool import Pool
from envsched.topology.checks import read_check
from envsched.topology.schema import CheckKind

FORMS = [
    # reached by a key
    ("return final_state['boxes']['B1']['label'] == 'salt'", "equality", {}),
    ("return final_state.get('boxes', {}).get('B1', {}).get('label') == 'salt'", "equality", {}),
    ("box = final_state['boxes'].get('B1')\nif not box:\n    return False\nreturn box['label'] == 'salt'", "equality", {}),
    ("box = final_state['boxes']['B1']\nif box['label'] != 'salt':\n    return False\nreturn True", "equality", {}),
    ("return final_state['boxes']['B1']['label'] != 'salt'", "equality", {"is_negative": True}),
    ("return final_state['boxes']['B1']['is_open'] is True", "equality", {}),
    ("return bool(final_state['boxes']['B1']['is_open'])", "equality", {}),
    ("return not final_state['boxes']['B1'].get('is_open', False)", "equality", {"is_negative": True}),
    ("return final_state['boxes']['B1']['label'].startswith('sa')", "equality", {}),
    ("return final_state['boxes']['B1']['label'] in ('salt', 'tea')", "equality", {}),
    ("return 'B1' in final_state['boxes']", "presence", {"identity": ("B1",)}),
    ("return 'B1' not in final_state['boxes']", "absence", {"is_negative": True, "identity": ("B1",)}),
    ("return final_state['boxes'].get('B1') is None", "absence", {}),
    ("return final_state['boxes'].get('B1') is not None", "presence", {}),
    ("return 'fragile' in final_state['boxes']['B1']['marks']", "presence", {"is_field": True}),
    ("return 'fragile' not in final_state['boxes']['B1']['marks']", "absence", {"is_field": True}),
    # searched for
    ("for b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n        return True\nreturn False", "presence", {}),
    ("return any(b['label'] == 'rice' for b in final_state['boxes'].values())", "presence", {"identity": ("rice",)}),
    ("return not any(b['label'] == 'rice' for b in final_state['boxes'].values())", "absence", {}),
    ("for b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n        return False\nreturn True", "absence", {}),
    (
        "for b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n        return b['weight'] == 3\nreturn False",
        "equality",
        {},
    ),
    (
        "found = None\nfor k, b in final_state['boxes'].items():\n    if b['label'] == 'rice':\n"
        "        found = b\n        break\nreturn found['weight'] == 3",
        "equality",
        {"identity": ("rice",)},
    ),
    ("ok = False\nfor b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n        ok = True\nreturn ok", "presence", {}),
    (
        "b = next((b for b in final_state['boxes'].values() if b['label'] == 'rice'), None)\nreturn b is not None and b['weight'] == 3",
        "equality",
        {},
    ),
    (
        "for b in final_state['boxes'].values():\n    if b['label'] == 'rice' and b['state'] != 'shut':\n        return False\nreturn True",
        "equality",
        {},
    ),
    ("return all(b['state'] == 'shut' for b in final_state['boxes'].values())", "equality", {}),
    (
        "for b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n"
        "        if b['weight'] == 3:\n            return True\n        return False\nreturn False",
        "equality",
        {},
    ),
    # counted
    ("return len(final_state['boxes']) == 3", "count", {}),
    ("return len([b for b in final_state['boxes'].values() if b['label'] == 'rice']) == 2", "count", {}),
    ("return len([b for b in final_state['boxes'].values() if b['label'] == 'rice']) >= 1", "presence", {}),
    ("return len([b for b in final_state['boxes'].values() if b['label'] == 'rice']) == 0", "absence", {}),
    ("return sum(b['weight'] for b in final_state['boxes'].values()) <= 10", "count", {}),
    ("n = 0\nfor b in final_state['boxes'].values():\n    if b['label'] == 'rice':\n        n += 1\nreturn n == 2", "count", {}),
    # related
    ("return final_state['boxes']['B1']['weight'] > 3", "relation", {}),
    ("return final_state['boxes']['B1']['owner'] == final_state['boxes']['B2']['owner']", "relation", {}),
    ("return final_state['boxes']['B1']['weight'] - final_state['boxes']['B2']['weight'] == 3", "relation", {}),
    (
        "return final_state['boxes']['B1']['weight'] > initial_state['boxes']['B1']['weight']",
        "relation",
        {"reads_initial": True, "keeps": False},
    ),
    ("return final_state['boxes']['B1'] == initial_state['boxes']['B1']", "relation", {"reads_initial": True, "keeps": True}),
    ("return len(final_state['boxes']) == len(initial_state['boxes'])", "relation", {"reads_initial": True}),
    # odd
    ("def norm(x):\n    return str(x).lower()\nreturn norm(final_state['boxes']['B1']['label']) == norm('SALT')", "equality", {}),
    ("try:\n    return final_state['boxes']['B1']['label'] == 'salt'\nexcept Exception:\n    return False", "equality", {}),
    ("if (box := final_state['boxes'].get('B1')):\n    return box['label'] == 'salt'\nreturn False", "equality", {}),
    ("return {'label', 'weight'}.issubset(final_state['boxes']['B1'].keys())", "presence", {}),
    ("return True", "other", {}),
    ("return 3 > 2", "other", {}),
]


@pytest.mark.parametrize(("body", "kind", "traits"), FORMS)
def test_forms(body, kind, traits):
    source = "def check_func(final_state):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    reading = read_check(source)
    assert reading.kind == kind
    for name, value in traits.items():
        assert getattr(reading, name) == value, name
    if kind != "other":
        assert reading.state_keys == {"boxes"}
        assert reading.target == "boxes"


@pytest.mark.parametrize(
    "source", ["", "x = 1", "def check_func(:", "def check_func(final_state):\n\treturn '\0'", "class A: pass", "lambda s: True"]
)
def test_what_is_no_check_is_other(source):
    assert read_check(source).kind == CheckKind.OTHER


def test_the_last_function_counts_where_none_is_called_check_func():
    source = "def helper(x):\n    return x\ndef verify(state):\n    return 'B1' in state['boxes']"
    assert read_check(source).kind == CheckKind.PRESENCE


def test_an_expression_nested_beyond_reason_is_no_crash():
    deep = " + ".join(["final_state['a']"] * 5000)
    assert read_check(f"def check_func(final_state):\n    return {deep} == 3").kind in (CheckKind.OTHER, CheckKind.RELATION)


SOURCES = sorted({check.source for task in Pool.bundled().tasks for check in task.checks})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(SOURCES), st.data())
def test_mangled_code_is_never_a_crash(source, data):
    start = data.draw(st.integers(0, len(source)))
    stop = data.draw(st.integers(start, min(len(source), start + 12)))
    insert = data.draw(st.sampled_from(["", " ", "(", ")", "not ", "\n", "[", "lambda: ", "*", "None", "await ", "yield "]))
    assert read_check(source[:start] + insert + source[stop:]).kind in CheckKind
