#!/usr/bin/env python3
"""Judges the vectors of workflows' steps, which the product's tests judge too: the same answer and code for each."""
import json
import pathlib
import sys

from ledger_formats import Refused, read_json, timestamp_text
from workflow_steps import BP_PIN, Steps, find_workflow, judge, read_routing

FILE = pathlib.Path(__file__).parents[2] / "components/core/blueprint/vectors/steps.json"


def predecessor_of(steps, at, pin):
    if at == 0:
        return {"txId": pin, "type": "Control"}
    before = steps[at - 1]
    return {"txId": before["txId"], "type": before["type"], "routing": before["metadata"]["routing"]}


def code_of(record, workflow, is_pin_known, predecessor, now):
    try:
        judge(record, workflow, is_pin_known, predecessor, now)
        return None
    except Refused as refusal:
        return refusal.code


def code_in_register(records, workflow, pin):
    """The code that ends a register of one docket for each record, and whether it is that of the last one."""
    steps = Steps()
    steps.pins[pin] = workflow
    for number, (record, now) in enumerate(records):
        try:
            steps.take({"docketNumber": number, "timestamp": timestamp_text(now)}, [(record, b"")])
        except Refused as refusal:
            return refusal.code, number == len(records) - 1
    return None, True


def differences(vectors):
    """Each answer that differs, and None for each that is the same."""
    for number, walk in enumerate(vectors["walks"]):
        workflow, steps = find_workflow(walk["definition"]), walk["steps"]
        cases = [{"at": at, "change": {}, "code": None} for at in range(len(steps))]
        for case in cases + walk["spoilt"]:
            step, predecessor = steps[case["at"]], predecessor_of(steps, case["at"], vectors["pin"])
            record, now = {**step, **case["change"]}, int(case.get("now", step["now"]))
            code = code_of(record, workflow, case.get("isPinKnown", True), predecessor, now)
            where = f"walk {number}: {json.dumps(case, ensure_ascii=False)}: here {code}"
            yield None if code == case["code"] else where
            before = [(each, int(each["now"])) for each in steps[: case["at"]]]
            if case.get("isPinKnown", True):
                found = code_in_register(before + [(record, now)], workflow, vectors["pin"])
                routing = read_routing(record["metadata"].get("routing", ""))
                is_pinned = routing is None or routing["blueprintDefinitionTxId"] == vectors["pin"]
                # a register finds no definition for another pin, the judge of the vectors is given one
                expected = case["code"] if is_pinned else BP_PIN
                yield None if found == (expected, True) else f"{where}, in a register {found}"
    for case in vectors["definitions"]:
        compiles = find_workflow(read_json(case["text"])) is not None
        yield None if compiles == case["compiles"] else f"definition {case['text']}: here {compiles}"


def main():
    answers = list(differences(json.loads(FILE.read_text(encoding="utf-8"))))
    wrong = [each for each in answers if each is not None]
    for each in wrong[:10]:
        print(f"NOT {each}")
    print(f"{'NOT' if wrong else 'ok '} {len(answers) - len(wrong)} of {len(answers)} vectors of steps")
    print(f"{int(not wrong)} passed, {int(bool(wrong))} failed")
    sys.exit(1 if wrong else 0)


main()
