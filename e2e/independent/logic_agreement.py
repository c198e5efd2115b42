#!/usr/bin/env python3
"""Judges JSON Logic by `panzi-json-logic`: the same results as ours, for the common core and for generated logic.

    python3 logic_agreement.py CASES_FILE

Every line of CASES_FILE is one case: {rule, data, result}, with the result of our evaluator.
"""

import json
import math
import sys

from json_logic import jsonLogic


def same(ours: object, theirs: object) -> bool:
    """JSON has one kind of number, one zero, and nothing that is not finite."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-15)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    return type(ours) is type(theirs) and ours == theirs


def judge(case: dict) -> tuple:
    try:
        theirs = jsonLogic(case["rule"], case.get("data"))
    except Exception as error:  # a judge that fails has another opinion, whatever its error is
        return False, repr(error)
    return same(case["result"], theirs), theirs


def main() -> int:
    passed = failed = 0
    for line in open(sys.argv[1], encoding="utf-8"):
        case = json.loads(line)
        agrees, theirs = judge(case)
        if agrees == (case.get("differs") is None):
            passed += 1
            continue
        failed += 1
        print(f"NOT {json.dumps(case)}: {theirs!r}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
