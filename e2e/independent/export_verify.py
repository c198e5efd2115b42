#!/usr/bin/env python3
"""Checks the export of a register of Chancery offline, with none of Chancery's code.

    export_verify.py FILE [--flips N] [--seed S] [--accepted IDS]

FILE is what GET /api/registers/{id}/export answered: one canonical JSON value a line. It is read line by line, with
memory for one docket and the last step of each workflow: hashes, links, Merkle roots, the register log, every
signature, the rules that the control transactions decided, each certificate by the validators of its height, every step
of a workflow by its pinned definition, and the signed checkpoint at the end. With --flips it also changes one byte at
each of N places and insists that every such copy is refused; with --accepted it insists that no transaction is sealed
twice, and that each one the file IDS names (a line each) is sealed.

Needs Python 3.9 and the package `cryptography`.
"""
import argparse
import io
import json
import random
import re
import sys
from collections import Counter

from chain_checks import check_attestations, check_certificate, check_docket, check_record
from ledger_formats import (
    MEMBER,
    Log,
    Refused,
    b64,
    jcs,
    leaf_hash,
    log_leaf,
    need,
    read_json,
    sha256,
    signature_holds,
    unb64,
    wallet_address,
)
from register_effects import active_members
from register_rules import check_genesis, fold_docket
from workflow_steps import Steps

MALFORMED = (Refused, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError)
HASH = re.compile("[0-9a-f]{64}")

HEADER = {"format", "version", "registerId", "dockets"}
DOCKET = {
    *("registerId", "docketNumber", "previousHash", "timestamp", "validatorAddress", "transactionIds", "hash"),
    *("merkleRoot", "logRoot", "validatorSetHash", "isGenesis", "sizeBytes"),
}
CERTIFICATE = {"version", "height", "round", "docketHash", "merkleRoot", "logRoot", "validatorSetHash", "signatures"}
PRECOMMIT = {"validatorId", "index", "timestamp", "signature"}
VOTE = {
    *("docketHash", "validatorId", "validatorAddress", "approved", "timestamp", "signature", "algorithm"),
    "publicKey",
}


def members(value, names, what):
    need(isinstance(value, dict) and set(value) == set(names), f"{what} has not exactly its members")
    return value


def read_line(line):
    """The data of a line. Every value has one spelling: the text must be the canonical one."""
    value = read_json(line)
    need(isinstance(value, dict) and jcs(value) == line, "the line is not in canonical form")
    return value


def genesis_config(payload, network):
    """The genesisConfig that follows from a control record."""
    record = read_json(payload)
    owner = next(each for each in record["attestations"] if each["role"] == "Owner")
    validators = record["validators"]["validators"]
    config = {
        "registerName": record["name"],
        "creatorAddress": owner["subject"][len(MEMBER) :],
        "initialValidators": [each["validatorId"] for each in validators if each["status"] == "Active"],
        "policyVersion": record["registerPolicy"]["version"],
        "cryptoPolicyVersion": record["cryptoPolicy"]["version"],
        "protocol": "bft-1",
        "networkId": network,
    }
    return jcs(config).decode()


def note_keys(network, register, rules):
    """The keys that may sign the checkpoint of the last docket: name of the line, kind, key. The log comes first."""
    yield f"{network}/registers/{register}", b"\x01", unb64(rules["systemKey"]["publicKey"])
    for member in active_members(rules):
        yield f"{network}/validators/{member['validatorId']}", b"\x04", unb64(member["publicKey"])


def check_note(note, keys, size, root):
    """The C2SP checkpoint: its exact body, and each line by a known key, none twice. Returns the cosigners."""
    keys = list(keys)
    origin = keys[0][0]
    body = f"{origin}\n{size}\n{b64(root)}\n"
    need(note.startswith(body + "\n") and note.endswith("\n"), "the checkpoint commits to another log")
    known = {(name, sha256(f"{name}\n".encode() + kind + key)[:4]): (kind, key) for name, kind, key in keys}
    seen = []
    for line in note[len(body) + 1 : -1].split("\n"):
        dash, name, text = line.split(" ")
        blob = unb64(text)
        need(dash == "\u2014" and (name, blob[:4]) in known, "a line of the checkpoint is by an unknown key")
        need(name not in seen, f"{name} signs the checkpoint twice")
        kind, key = known[name, blob[:4]]
        message, signature = body.encode(), blob[4:]
        if kind == b"\x04":
            time, signature = int.from_bytes(blob[4:12], "big"), blob[12:]
            message = f"cosignature/v1\ntime {time}\n{body}".encode()
        need(signature_holds("ED25519", key, message, signature), f"signature of {name} under the checkpoint")
        seen.append(name)
    need(origin in seen, "the checkpoint has no signature of its log")
    return [name for name in seen if name != origin]


class Export:
    """State of the verification. `take` each line, then `finish`."""

    def __init__(self):
        self.line, self.header, self.previous, self.log, self.rules = 0, None, None, Log(), None
        self.network, self.transactions, self.cosigned = None, 0, None
        self.steps = Steps()
        self.docket, self.taken, self.leaves, self.size = None, [], [], 0

    def place(self):
        if self.docket is None:
            return f"line {self.line}"
        ids, at = self.docket["transactionIds"], len(self.taken)
        transaction = f", transaction {ids[at]}" if at < len(ids) else ""
        return f"line {self.line}, docket {self.docket['docketNumber']}{transaction}"

    def take(self, line):
        self.line += 1
        try:
            self.accept(read_line(line))
        except MALFORMED as error:
            raise Refused(f"{self.place()}: {error or type(error).__name__}") from error

    def accept(self, value):
        need(self.cosigned is None, "there is a line behind the checkpoint")
        if self.header is None:
            self.header = members(members(value, ["export"], "the first line")["export"], HEADER, "the first line")
            kind = (self.header["format"], self.header["version"])
            need(kind == ("chancery-register-export", 1), "the file is no export of this version")
        elif self.docket is not None:
            self.take_transaction(members(value, ["record", "payload"], "the line of a transaction"))
        elif "docket" in value:
            self.take_docket(members(value, ["docket", "certificate", "attestations"], "the line of a docket"))
        else:
            self.take_checkpoint(members(value, ["checkpoint", "transactions"], "the last line"))

    def take_docket(self, value):
        docket = value["docket"]
        first = docket["docketNumber"] == 0
        members(docket, DOCKET | ({"genesisConfig"} if first else set()), "the docket")
        need(docket["registerId"] == self.header["registerId"], "the docket is of another register")
        need(docket["isGenesis"] is first and self.log.size < self.header["dockets"], "a docket too many")
        need(all(HASH.fullmatch(each) for each in docket["transactionIds"]), "ids of transactions")
        need(len(set(docket["transactionIds"])) == len(docket["transactionIds"]) > 0, "an id is there twice")
        for each in members(value["certificate"], CERTIFICATE, "the certificate")["signatures"]:
            members(each, PRECOMMIT, "a precommit")
        for each in value["attestations"]:
            members(each, VOTE, "a vote")
            need(each["approved"] is True and re.fullmatch("[0-9a-f]+", each["signature"]), "a vote is malformed")
        votes = {"certificate": value["certificate"], "consensusVotes": value["attestations"]}
        self.docket, self.taken, self.leaves, self.size = {**docket, **votes}, [], [], 0

    def take_transaction(self, value):
        docket = self.docket
        record, payload = unb64(value["record"]), unb64(value["payload"])
        known = check_record(record, payload, docket["transactionIds"][len(self.taken)])
        need(known["registerId"] == docket["registerId"], "the record is of another register")
        self.leaves.append(leaf_hash(record))
        self.size += len(record)
        # only the content of control transactions is needed again
        self.taken.append((known, payload if known["type"] in ("Control", "Genesis") else b""))
        if len(self.taken) == len(docket["transactionIds"]):
            self.close(docket)

    def close(self, docket):
        if self.rules is None:
            record, payload = self.taken[0]
            self.rules = check_genesis(docket, record, payload, docket["registerId"])
            self.network = json.loads(docket["genesisConfig"])["networkId"]
            need(docket["genesisConfig"] == genesis_config(payload, self.network), "genesisConfig")
            after = self.rules
        else:
            after = fold_docket(self.rules, docket, self.taken)
        check_docket(docket, self.previous, self.leaves, self.log)
        need(docket["sizeBytes"] == self.size, "sizeBytes is not the sum of the records")
        voters = active_members(self.rules)
        check_certificate(docket, voters, self.network, self.rules["policy"]["consensus"]["signatureThresholdMin"])
        check_attestations(docket, voters)
        sealers = [wallet_address(each["algorithm"], unb64(each["publicKey"])) for each in voters]
        need(docket["validatorAddress"] in sealers, "the sealing address is not a member")
        self.steps.take(docket, self.taken)
        self.log.append(log_leaf(docket))
        self.transactions += len(self.taken)
        names = ("registerId", "docketNumber", "hash", "timestamp", "logRoot")
        self.previous, self.rules, self.docket = {name: docket[name] for name in names}, after, None

    def take_checkpoint(self, value):
        need(self.log.size == self.header["dockets"], "the number of dockets differs from the first line")
        need(self.transactions == value["transactions"], "the number of transactions differs from the last line")
        keys = note_keys(self.network, self.header["registerId"], self.rules)
        root = bytes.fromhex(self.previous["logRoot"])
        self.cosigned = check_note(value["checkpoint"], keys, self.log.size, root)

    def finish(self):
        need(self.cosigned is not None, f"line {self.line}: the export is not whole")
        return (
            f"verified {self.log.size} dockets, {self.transactions} transactions, head {self.previous['hash']}, "
            f"{self.steps.count} steps of workflows, "
            f"checkpoint cosigned by {len(self.cosigned)} of {len(active_members(self.rules))} validators"
        )


def check(lines):
    """Checks an export given as lines of bytes, each with its newline."""
    export = Export()
    for line in lines:
        need(line.endswith(b"\n"), f"line {export.line + 1} does not end: the file is cut off")
        export.take(line[:-1])
    return export.finish()


def flips(data, count, seed):
    """Copies with one byte changed, at places and by changes that the seed decides."""
    chance = random.Random(seed)
    for place in sorted(chance.sample(range(len(data)), min(count, len(data)))):
        copy = bytearray(data)
        copy[place] ^= 1 << chance.randrange(8)
        yield place, bytes(copy)


def check_flips(path, count, seed):
    """Numbers of refused and of accepted changed copies."""
    with open(path, "rb") as file:
        data = file.read()
    refused = missed = 0
    for place, copy in flips(data, count, seed):
        try:
            check(io.BytesIO(copy))
            print(f"NOT refused: byte {place} changed (seed {seed})")
            missed += 1
        except Refused:
            refused += 1
    return refused, missed


def check_accepted(path, ids):
    """Transactions that are sealed twice, or were accepted and are not sealed; counts of both."""
    with open(path, "rb") as file:
        dockets = (json.loads(line) for line in file if line.startswith(b'{"attestations"'))
        sealed = Counter(each for value in dockets for each in value["docket"]["transactionIds"])
    with open(ids, encoding="ascii") as file:
        accepted = set(file.read().split())
    return sum(times > 1 for times in sealed.values()), len(accepted - sealed.keys()), len(accepted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--flips", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--accepted", metavar="IDS")
    args = parser.parse_args()
    try:
        with open(args.file, "rb") as file:
            print(f"ok  {check(file)}")
        passed, failed = 1, 0
    except Refused as refusal:
        print(f"REFUSED: {refusal}")
        passed, failed = 0, 1
    if args.flips and not failed:
        refused, missed = check_flips(args.file, args.flips, args.seed)
        if not missed:
            print(f"ok  {refused} copies with one byte changed are refused (seed {args.seed})")
        passed, failed = passed + (missed == 0), failed + (missed > 0)
    if args.accepted and not failed:
        twice, lost, accepted = check_accepted(args.file, args.accepted)
        print(f"{'NOT' if twice or lost else 'ok '} {accepted} accepted: {lost} not sealed, {twice} sealed twice")
        passed, failed = passed + (not (twice or lost)), failed + bool(twice or lost)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
