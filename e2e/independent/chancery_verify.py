#!/usr/bin/env python3
"""Checks a register of Chancery from its REST interface alone, with none of Chancery's code.

    chancery_verify.py http://127.0.0.1:8080 REGISTER_ID --email admin@... --password-file FILE [--submit]

Recomputes docket hashes and links, record leaves, Merkle roots, the register log, inclusion proofs, the checkpoint
and every signature; replays roster, validators and policies from the sealed control transactions, judges each
certificate by the validators of its height and each step of a workflow by its pinned definition, and compares the
outcome with what the interface says. Then it changes one byte of each kind of evidence and insists that the check
refuses it. With --submit it first signs a transaction of its own and sends it: an example for clients in any language.

Where to read: ledger_formats.py (everything hashed and signed), chain_checks.py (dockets, certificates, proofs),
register_rules.py (what control transactions decide), workflow_steps.py (which step may follow which),
register_claims.py (the comparison), tampering.py.

Needs Python 3.9 and, for signatures, the package `cryptography`.
"""
import argparse
import functools
import json
import sys

from chain_checks import (
    check_attestations,
    check_certificate,
    check_checkpoint,
    check_cosignatures,
    check_docket,
    check_inclusion,
    check_record,
)
from ledger_formats import Log, Refused, leaf_hash, log_leaf, need, read_json, validator_set_hash
from register_claims import check_claims
from register_effects import active_members
from register_replay import Replay
from rest_interface import Api, collect, submit
from tampering import tamperings
from workflow_steps import Steps


def replay(register, evidence):
    """Replays the rules alone, as if every hash around them had been recomputed to match."""
    done = Replay(register)
    for docket in evidence["dockets"]:
        ids = docket["transactionIds"]
        done.take(docket, [(read_json(evidence["records"][t]), evidence["payloads"][t]) for t in ids])
    check_claims(done, evidence["said"])
    return done


def check(register, evidence):
    """All checks over collected evidence; returns the head hash."""
    dockets = evidence["dockets"]
    need(dockets, "the register has no docket")
    network = json.loads(dockets[0]["genesisConfig"])["networkId"]
    previous, log, done, steps = None, Log(), Replay(register), Steps()
    for docket in dockets:
        ids = docket["transactionIds"]
        values = [check_record(evidence["records"][t], evidence["payloads"][t], t) for t in ids]
        need(all(value["registerId"] == register == docket["registerId"] for value in values), "another register")
        need(docket["transactionCount"] == len(ids), f"transactionCount of docket {docket['docketNumber']}")
        check_docket(docket, previous, [leaf_hash(evidence["records"][t]) for t in ids], log)
        transactions = [(value, evidence["payloads"][t]) for value, t in zip(values, ids)]
        rules = done.take(docket, transactions)
        steps.take(docket, transactions)
        members = active_members(rules)
        check_certificate(docket, members, network, rules["policy"]["consensus"]["signatureThresholdMin"])
        check_attestations(docket, members)
        log.append(log_leaf(docket))
        previous = docket
    for tx_id, (proof, docket) in evidence["proofs"].items():
        check_inclusion(proof, evidence["records"][tx_id], docket, previous["logRoot"], log.size)
    check_checkpoint(evidence["note"], evidence["vkey"], f"/registers/{register}", previous["logRoot"], log.size)
    cosigned = check_cosignatures(evidence["note"], active_members(done.rules), network)
    need(cosigned > 0, "no validator cosigned the checkpoint")
    check_claims(done, evidence["said"])
    return previous["hash"]


def stale_sets(evidence, rules_before):
    """Each change of the validator set, judged by the set that was in force one docket earlier."""
    network = json.loads(evidence["dockets"][0]["genesisConfig"])["networkId"]
    for docket, earlier, rules in zip(evidence["dockets"][1:], rules_before, rules_before[1:]):
        old = active_members(earlier)
        if validator_set_hash(old) != validator_set_hash(active_members(rules)):
            number = docket["docketNumber"]
            judge = functools.partial(check_certificate, docket, old, network, 1)
            yield f"docket {number} by the validators of docket {number - 1}", judge


def summary(evidence, done):
    dockets, rules = evidence["dockets"], done.rules
    sets = len({docket["validatorSetHash"] for docket in dockets})
    votes = [vote for docket in dockets for vote in docket.get("consensusVotes", [])]
    return (
        f"verified {len(dockets)} dockets, {len(evidence['records'])} transactions, head {dockets[-1]['hash']}\n"
        f"replayed {rules['controlCount']} control transactions: roster version {rules['rosterVersion']}, "
        f"{len(done.versions['policy'])} policies, {len(done.versions['cryptoPolicy'])} crypto policies, "
        f"{len(done.closed)} closed proposals, {sets} validator sets\n"
        f"{len(votes)} votes of the specification, {sum(vote['approved'] for vote in votes)} of them approve"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("register_id")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--submit", action="store_true")
    args = parser.parse_args()
    with open(args.password_file, encoding="utf-8") as file:
        api = Api(args.base_url, args.email, file.read().strip())
    passed = failed = 0
    try:
        if args.submit:
            print(f"submitted and confirmed {submit(api, args.register_id)}")
            passed += 1
        evidence = collect(api, args.register_id)
        check(args.register_id, evidence)
        done = replay(args.register_id, evidence)
        print(summary(evidence, done))
        passed += 1
        for what, judge in stale_sets(evidence, done.before):
            try:
                judge()
                print(f"NOT refused: {what}")
                failed += 1
            except Refused as refusal:
                print(f"refused: {what}: {refusal}")
                passed += 1
        judges = {"check": check, "replay": replay}
        for judge, what, copy in tamperings(evidence, done.before):
            try:
                judges[judge](args.register_id, copy)
                print(f"NOT refused: one byte of {what} changed")
                failed += 1
            except (Refused, ValueError, KeyError) as refusal:
                print(f"refused with one byte changed in {what}: {str(refusal)[:160]}")
                passed += 1
    except Refused as refusal:
        print(f"REFUSED: {refusal}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
