#!/usr/bin/env python3
"""Replays random histories of governance and compares each docket with the result of the product's rules.

    rules_replay.py FILE

FILE holds one history a line: the genesis record, and dockets of control transactions, valid and invalid. After each
docket both sides must have the same rules to the byte, or refuse it with the same code.
"""
import json
import sys
from collections import Counter

from ledger_formats import Refused, jcs_text, read_json
from register_rules import check_genesis_record, fold_docket, genesis_rules


def transactions_of(step):
    for record in step["transactions"]:
        yield {name: record[name] for name in record if name != "payloadText"}, record["payloadText"].encode()


def replay(history, codes):
    """The number of dockets that both sides judged alike."""
    genesis = history["genesis"]
    check_genesis_record(genesis["payload"])
    rules = genesis_rules(genesis["payload"], genesis["signer"])
    if jcs_text(rules) != genesis["rules"]:
        raise Refused(f"genesis: {jcs_text(rules)}\nproduct: {genesis['rules']}")
    for place, step in enumerate(history["steps"]):
        try:
            after, code = fold_docket(rules, step, list(transactions_of(step))), None
        except Refused as refusal:
            after, code, why = rules, refusal.code, refusal
        codes[code or "sealed"] += 1
        where = f"docket {step['docketNumber']}, step {place}: {json.dumps(step['transactions'], ensure_ascii=False)}\n"
        if code != step.get("code"):
            raise Refused(f"{where}here {code} ({why if code else 'sealed'}), product {step.get('code', 'sealed')}")
        if code is None and jcs_text(after) != step["rules"]:
            raise Refused(f"{where}here    {jcs_text(after)}\nproduct {step['rules']}")
        rules = after
    return len(history["steps"])


def main():
    passed = failed = 0
    codes = Counter()
    with open(sys.argv[1], "rb") as file:
        for line in file:
            history = read_json(line)
            try:
                replay(history, codes)
                passed += 1
            except (Refused, KeyError, TypeError, ValueError) as difference:
                print(f"history of seed {history['seed']} differs: {difference}")
                failed += 1
    print(", ".join(f"{count} {code}" for code, count in codes.most_common()))
    if codes["sealed"] < passed:
        print("next to nothing was sealed: the histories compare refusals only")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
