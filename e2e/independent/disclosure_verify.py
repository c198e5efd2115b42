#!/usr/bin/env python3
"""Checks a disclosure file of Chancery offline, with none of Chancery's code.

    disclosure_verify.py FILE [--flips N] [--seed S]

FILE shows one group of an action: commitment, payload hash, record, its place in a docket and in the log of the register,
and the signed checkpoint are computed anew. With --flips it also changes one byte at each of N places and insists that
every such copy is refused.

Needs Python 3.9 and the package `cryptography`.
"""
import argparse
import base64
import sys

from chain_checks import check_checkpoint, check_record
from export_verify import MALFORMED, flips
from ledger_formats import Refused, climb, jcs, leaf_hash, log_leaf, need, read_json, sha256, unb64

FILE = {"disclosure", "record", "payload", "group", "docket", "inclusion", "log", "checkpoint", "checkpointKey"}
DOCKET = {"registerId", "docketNumber", "hash", "merkleRoot", "timestamp", "validatorSetHash"}


def members(value, names, what):
    need(isinstance(value, dict) and set(value) == set(names), f"{what} has not exactly its members")
    return value


def check_group(value, record, payload):
    """The one group of the payload that is committed to the plaintext shown, in the record's own action."""
    envelope = read_json(payload)
    need(envelope["contentEncoding"] == "jwe-groups", "the payload has no groups")
    own = (record["blueprintId"], record["actionId"], record["metadata"]["instanceId"])
    need((envelope["blueprintId"], envelope["actionId"], envelope["instanceId"]) == own, "the payload is of another action")
    group = members(value["group"], {"salt", "fields", "data"}, "the group")
    commitment = "sha256:" + sha256(jcs(group)).hex()
    found = [each for each in envelope["groups"] if each["commitment"] == commitment]
    need(found, "no group is committed to this text")
    place = "|".join((record["registerId"], envelope["instanceId"], envelope["actionId"], found[0]["groupId"]))
    aad = base64.urlsafe_b64encode(place.encode()).rstrip(b"=").decode()
    need(found[0]["jwe"]["aad"] == aad, "the group was encrypted for another action")
    return [each["header"]["kid"] for each in found[0]["jwe"]["recipients"]]


def path_shape(steps):
    for step in steps:
        members(step, {"hash", "position"}, "a step")
        need(step["position"] in ("Left", "Right"), "a side")
        need(bytes.fromhex(step["hash"]).hex() == step["hash"] and len(step["hash"]) == 64, "a hash of a step")


def sides(index, size):
    """Sides of the siblings of a leaf in a tree of that size, nearest first."""
    found, last = [], size - 1
    while last > 0:
        if index % 2:
            found.append("Left")
        elif index < last:
            found.append("Right")
        index, last = index // 2, last // 2
    return found


def judge(data):
    value = members(read_json(data), FILE, "the file")
    need(jcs(value) + b"\n" == data, "the file is not in canonical form")
    need(value["disclosure"] == {"format": "chancery-disclosure", "version": 1}, "another format")
    record_bytes, payload = unb64(value["record"]), unb64(value["payload"])
    record = check_record(record_bytes, payload, read_json(record_bytes)["txId"])
    need(record["bound"] is True, "the id of the record is not that of its envelope")
    docket = members(value["docket"], DOCKET, "the docket")
    need(docket["registerId"] == record["registerId"], "the docket is of another register")
    recipients = check_group(value, record, payload)
    path_shape(value["inclusion"])
    path_shape(value["log"])
    need(climb(leaf_hash(record_bytes), value["inclusion"]).hex() == docket["merkleRoot"], "the path to the docket")
    root = climb(log_leaf(docket), value["log"]).hex()
    size = int(value["checkpoint"].split("\n")[1])
    need(value["checkpoint"].split("\n")[1] == str(size), "size of the log")
    need([step["position"] for step in value["log"]] == sides(docket["docketNumber"], size), "the path to the log")
    check_checkpoint(value["checkpoint"], value["checkpointKey"], f"/registers/{record['registerId']}", root, size)
    need(value["checkpoint"].count("\n") == 5, "the checkpoint has more lines than its own")
    return f"{record['txId']} shows {sorted(value['group']['data'])} to {', '.join(recipients)}"


def check(data):
    try:
        return judge(data)
    except Refused:
        raise
    except MALFORMED as error:
        raise Refused(f"malformed: {error}") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--flips", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with open(args.file, "rb") as file:
        data = file.read()
    passed = failed = 0
    try:
        print(f"ok  {check(data)}")
        passed = 1
    except Refused as refusal:
        print(f"REFUSED: {refusal}")
        failed = 1
    missed = 0
    for place, copy in flips(data, args.flips, args.seed) if passed else ():
        try:
            check(copy)
            print(f"NOT refused: byte {place} changed (seed {args.seed})")
            missed += 1
        except Refused:
            pass
    if args.flips and passed:
        print(f"{'NOT' if missed else 'ok '} copies with one byte changed are refused (seed {args.seed})")
        passed, failed = passed + (missed == 0), failed + (missed > 0)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
