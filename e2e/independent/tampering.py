"""Altered copies of a register's evidence. Each must be refused; a check that lets one pass checks nothing."""
import json

from attestation_cases import spoiled_votes
from ledger_formats import jcs, quorum, read_json
from register_effects import active_members
from register_operations import find_decisive_approval
from register_rules import control_transaction


def flipped(text):
    """One hex or base64 character changed, in the middle."""
    i = len(text) // 2
    return text[:i] + ("1" if text[i] != "1" else "2") + text[i + 1 :]


def altered(evidence, change):
    copy = json.loads(json.dumps({k: v for k, v in evidence.items() if k not in ("records", "payloads")}))
    copy["records"], copy["payloads"] = dict(evidence["records"]), dict(evidence["payloads"])
    change(copy)
    return copy


def in_docket(place, member):
    return lambda e: e["dockets"][place].__setitem__(member, flipped(e["dockets"][place][member]))


def in_bytes(kind, tx_id):
    def change(e):
        data = bytearray(e[kind][tx_id])
        data[len(data) // 2] ^= 1
        e[kind][tx_id] = bytes(data)

    return change


def in_payload(tx_id, change):
    """`change` gets the payload as data; its result replaces the bytes."""

    def rewrite(e):
        value = read_json(e["payloads"][tx_id])
        change(value)
        e["payloads"][tx_id] = jcs(value)

    return rewrite


def of_chain(evidence, rules_before):
    """Dockets, records, certificates, proofs and checkpoints."""
    last = len(evidence["dockets"]) - 1
    rules = rules_before[last]
    threshold = rules["policy"]["consensus"]["signatureThresholdMin"]
    enough = quorum(len(active_members(rules)), threshold)
    tx_id = evidence["dockets"][last]["transactionIds"][-1]

    def in_certificate(e):
        signature = e["dockets"][last]["certificate"]["signatures"][0]
        signature["signature"] = flipped(signature["signature"])

    def too_few(e):
        del e["dockets"][last]["certificate"]["signatures"][enough - 1 :]

    def twice(e):
        signatures = e["dockets"][last]["certificate"]["signatures"]
        signatures[-1] = dict(signatures[0])

    def in_path(e):
        path = e["proofs"][tx_id][0]["logProof"]["path"]
        path[0]["hash"] = flipped(path[0]["hash"])

    def in_note(e):
        size = e["note"].splitlines()[1]
        e["note"] = e["note"].replace(f"\n{size}\n", f"\n{int(size) + 1}\n", 1)

    def in_cosignature(e):
        *before, line = e["note"].splitlines()
        dash, signer, blob = line.split(" ", 2)
        e["note"] = "\n".join([*before, f"{dash} {signer} {flipped(blob)}"]) + "\n"

    for member in ("hash", "previousHash", "merkleRoot", "logRoot", "validatorSetHash"):
        yield f"docket.{member}", in_docket(last, member)
    for kind in ("records", "payloads"):
        yield kind[:-1], in_bytes(kind, tx_id)
    yield "certificate signature", in_certificate
    signatures = len(evidence["dockets"][last]["certificate"]["signatures"])
    yield "the number of signatures", too_few
    if signatures == enough > 1:
        yield "a signature that is there twice", twice
    if evidence["proofs"][tx_id][0]["logProof"]["path"]:
        yield "inclusion path", in_path
    yield "checkpoint", in_note
    yield "cosignature", in_cosignature


def of_votes(evidence, rules_before):
    """The specification's votes on the last docket that has any."""
    places = [place for place, docket in enumerate(evidence["dockets"]) if docket.get("consensusVotes")]
    if not places:
        return
    place = places[-1]
    members = active_members(rules_before[place])
    for what, votes in spoiled_votes(evidence["dockets"][place], members):
        yield what, lambda e, votes=votes: e["dockets"][place].__setitem__("consensusVotes", votes)


def of_claims(evidence):
    """Answers of the interface about the rules."""

    def in_member(e):
        e["said"]["roster"]["members"][0]["role"] = "Auditor"

    def in_policy(e):
        e["said"]["policy"]["policy"]["governance"]["proposalTtlDays"] += 1

    def in_validator(e):
        validator = e["said"]["validators"]["validators"][0]
        validator["publicKey"] = flipped(validator["publicKey"])

    yield "the roster that the interface shows", in_member
    yield "the policy that the interface shows", in_policy
    yield "a validator that the interface shows", in_validator


def in_approval(carrier, place):
    def change(value):
        approvals = value["operation"]["approvalSignatures"] if carrier == "operation" else value["approvals"]
        approvals[place]["signature"] = flipped(approvals[place]["signature"])

    return change


def in_operation(value):
    seconds = value["operation"]["proposedAt"]
    value["operation"]["proposedAt"] = seconds[:18] + ("0" if seconds[18] != "0" else "1") + seconds[19:]


def of_governance(evidence, rules_before):
    """Approvals and operations that decided something: (judge, case, change).

    "check" detects the changed payload. "replay" accepts every hash, as if an attacker had recomputed all of them: then
    the approvals themselves must be refused.
    """
    for docket, rules in zip(evidence["dockets"][1:], rules_before[1:]):
        for tx_id in docket["transactionIds"]:
            transaction = control_transaction(read_json(evidence["records"][tx_id]), evidence["payloads"][tx_id])
            found = find_decisive_approval(rules, transaction)
            if found is None:
                continue
            (carrier, _), number = found, docket["docketNumber"]
            approval = in_payload(tx_id, in_approval(*found))
            yield "check", f"an approval in docket {number}", approval
            yield "replay", f"an approval in docket {number}, all hashes made anew", approval
            if carrier == "operation":
                operation = in_payload(tx_id, in_operation)
                yield "check", f"an operation in docket {number}", operation
                yield "replay", f"an operation in docket {number}, all hashes made anew", operation


def tamperings(evidence, rules_before):
    """(judge, what is altered, the altered copy). `rules_before`: the rules by which each docket is judged."""
    for what, change in of_chain(evidence, rules_before):
        yield "check", what, altered(evidence, change)
    for what, change in of_votes(evidence, rules_before):
        yield "check", what, altered(evidence, change)
    for what, change in of_claims(evidence):
        yield "replay", what, altered(evidence, change)
    for judge, what, change in of_governance(evidence, rules_before):
        yield judge, what, altered(evidence, change)
