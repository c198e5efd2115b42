#!/usr/bin/env python3
import json
import pathlib
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger_formats import (
    approval_digest,
    b64,
    jcs,
    jcs_text,
    key_did,
    operation_id,
    possession_bytes,
    raw_public_key,
    roster_hash,
    sha256,
    signing_digest,
    transaction_id,
)

FILE = pathlib.Path(__file__).parents[2] / "components/core/ledger/vectors/governance.json"
REGISTER = "0123456789abcdef0123456789abcdef"
PROPOSED_AT = "2026-11-21T10:00:00.0000000+00:00"


def person(fill):
    key = Ed25519PrivateKey.from_private_bytes(bytes([fill]) * 32)
    return key, {"publicKey": raw_public_key(key.public_key()), "algorithm": "ED25519"}


def entry(fill, role):
    _, key = person(fill)
    return {"role": role, "subject": key_did(key), **key}


def validator_entry(fill, name):
    private, key = person(fill)
    claim = {"validatorId": name, **key}
    return {**claim, "proofOfPossession": b64(private.sign(possession_bytes(REGISTER, claim)))}


def approval(fill, operation, before, is_approval):
    private, key = person(fill)
    did = key_did(key)
    digest = approval_digest(REGISTER, did, is_approval, operation, before)
    signed = {"approverDid": did, "signature": b64(private.sign(digest)), "isApproval": is_approval}
    return {"approval": signed, "digest": digest.hex()}


def case(name, before, after, **members):
    proposer = before[0]
    operation = {"operationType": name, "proposerDid": proposer["subject"], "proposedAt": PROPOSED_AT, **members}
    hashes = {"rosterHashBefore": roster_hash(REGISTER, before), "rosterHashAfter": roster_hash(REGISTER, after)}
    votes = [approval(2, operation, hashes["rosterHashBefore"], yes) for yes in (True, False)]
    payload = {"version": 2, "operation": {**operation, "approvalSignatures": [votes[0]["approval"]]}, **hashes}
    envelope = {
        "registerId": REGISTER,
        "blueprintId": "register-governance-v1",
        "actionId": name,
        "payloadHash": sha256(jcs(payload)).hex(),
        "createdAt": PROPOSED_AT,
        "metadata": {"Type": "Control", "transactionType": "Control"},
    }
    private, key = person(1)
    tx_id = transaction_id(envelope, [key["publicKey"]])
    return {
        "operation": operation,
        "operationId": operation_id(REGISTER, operation, hashes["rosterHashBefore"]),
        "votes": votes,
        "payload": jcs_text(payload),
        "payloadHash": envelope["payloadHash"],
        "transactionId": tx_id,
        "signature": b64(private.sign(signing_digest(tx_id, envelope["payloadHash"]))),
    }


def vectors():
    roster = [entry(1, "Owner"), entry(2, "Admin")]
    newcomer = entry(3, "Designer")
    target = {"targetDid": newcomer["subject"]}
    key = {name: newcomer[name] for name in ("publicKey", "algorithm")}
    policy = {"version": 2, "governance": {"proposalTtlDays": 3}, "note": "Zwölf € \U0001f511"}
    return {
        "registerId": REGISTER,
        "createdAt": PROPOSED_AT,
        "roster": roster,
        "rosterHash": roster_hash(REGISTER, roster),
        "cases": [
            case("add-member", roster, [*roster, newcomer], **target, targetRole="Designer", targetKey=key),
            case("change-role", roster, [roster[0], {**roster[1], "role": "Auditor"}], targetDid=roster[1]["subject"], targetRole="Auditor"),
            case("add-validator", roster, roster, validatorEntry=validator_entry(60, "validator-4")),
            case("policy-update", roster, roster, policy=policy, justification="shorter"),
        ],
    }


def main():
    made = json.dumps(vectors(), indent=2, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(made, encoding="utf-8")
        return
    is_same = json.loads(FILE.read_text(encoding="utf-8")) == json.loads(made)
    print("ok  governance vectors" if is_same else "NOT governance vectors")
    print(f"{int(is_same)} passed, {int(not is_same)} failed")
    sys.exit(0 if is_same else 1)


main()
