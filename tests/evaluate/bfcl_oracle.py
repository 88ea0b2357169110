"""BFCL's own checker on the standard input's dialogues; run with its wheel as argument, apart from everything of ours.

A line in: ``{"entry": ..., "truth": [...], "turns": [turn [step [call text]]]}``; a line out: whether the checker takes it.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

for number, line in enumerate(sys.stdin):
    case = json.loads(line)
    category = case["entry"]["id"].rsplit("_", 1)[0]
    judged = multi_turn_checker(case["turns"], case["truth"], case["entry"], category, f"case{number}")
    print(json.dumps(bool(judged["valid"])))
