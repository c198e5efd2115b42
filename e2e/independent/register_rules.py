"""Replays the control transactions of a register: roster, validators, policies, open proposals.

The rules of a register are one JSON object. `genesis_rules` makes the first from the genesis record; `fold_docket`
gives the rules after a docket, which are in force from the next one on, or raises Refused when the docket may not contain
its transactions. The certificate of docket h is judged by the rules after docket h - 1.
"""
from blueprint_formats import PUBLISH_ACTION, is_publication
from ledger_formats import (
    Refused,
    attestation_bytes,
    key_did,
    need,
    possession_bytes,
    quorum,
    read_json,
    sha256,
    text_signature_holds,
    unb64,
    wallet_address,
)
from register_effects import BLUEPRINT, EFFECTS, active_members, count_set_changes, replaced, with_status
from register_operations import (
    apply_operation,
    apply_registration,
    enact_proposal,
    is_over,
    open_proposal,
    update_metadata,
    vote_on_proposal,
)
from register_policy import check_algorithms, read_policy
from register_votes import check_signers

# The payload of each action of the governance blueprint, and its operation (None: any).
ACTIONS = {
    **{kind: ("operation", kind) for kind in EFFECTS},
    "control.validator.approve": ("operation", "add-validator"),
    "control.validator.suspend": ("operation", "suspend-validator"),
    "control.validator.remove": ("operation", "remove-validator"),
    "control.policy.update": ("operation", "policy-update"),
    "control.config.update": ("operation", "policy-update"),
    "control.crypto.update": ("operation", "crypto-policy-update"),
    "control.validator.register": ("register", None),
    "control.validator.liveness-violation": ("propose", "suspend-validator"),
    "control.register.updatemetadata": ("metadata", None),
    "control.governance.propose": ("propose", None),
    "control.governance.approve": ("vote", None),
    "control.governance.enact": ("enact", None),
}



# ---------------------------------------------------------------- genesis


def check_genesis_record(record):
    """Every member of the roster attested its role, every validator possesses its key, and the numbers fit."""
    register, roster = record["registerId"], record["attestations"]
    need([entry["role"] for entry in roster].count("Owner") == 1, "there is not exactly one owner")
    need(len({entry["subject"] for entry in roster}) == len(roster), "a member is on the roster twice")
    for entry in roster:
        digest = sha256(attestation_bytes(register, record["name"], entry))
        holds = text_signature_holds(entry, entry["signature"], digest, prehashed=True)
        need(holds and key_did(entry) == entry["subject"], f"attestation of {entry['subject']}")
    members = record["validators"]["validators"]
    for entry in members:
        need(entry["derivationContext"] == "platform:docket-signing", f"{entry['validatorId']} signs with another key")
        holds = text_signature_holds(entry, entry["proofOfPossession"], possession_bytes(register, entry))
        need(holds, f"proof of possession of {entry['validatorId']}")
    active = [entry for entry in members if entry["status"] == "Active"]
    need(active and len({entry["publicKey"] for entry in active}) == len(active), "validators are missing or repeated")
    need(record["validators"]["requiredSignatures"] >= quorum(len(active)), "requiredSignatures is below the quorum")


def genesis_rules(record, signer):
    """The rules a register starts with. `signer`: the first signature of the genesis transaction."""
    roster_members = ("role", "subject", "publicKey", "algorithm", "grantedAt")
    rules = {
        "registerId": record["registerId"],
        "name": record["name"],
        "purpose": record["purpose"],
        "metadata": record.get("metadata", {}),
        "createdAt": record["createdAt"],
        "systemKey": {name: signer[name] for name in ("publicKey", "algorithm")},
        "roster": [{name: entry[name] for name in roster_members} for entry in record["attestations"]],
        "rosterVersion": 1,
        "validators": [genesis_validator(each) for each in record["validators"]["validators"]],
        "validatorSetVersion": record["validators"]["version"],
        "policy": read_policy(record["registerPolicy"]),
        "cryptoPolicy": record["cryptoPolicy"],
        "proposals": [],
        "enacted": [],
        "controlCount": 0,
    }
    return {**rules, "description": record["description"]} if "description" in record else rules


def genesis_validator(entry):
    facts = {name: entry[name] for name in ("validatorId", "publicKey", "algorithm", "proofOfPossession")}
    status = "Active" if entry["status"] == "Active" else "Removed"
    since = {"registeredAt": entry["authorizedAt"], "approvedAt": entry["authorizedAt"], "approvedBy": "genesis"}
    return {**facts, **since, "status": status, "effectiveFromDocket": 0}


# ---------------------------------------------------------------- dockets

STAGES = {
    "operation": apply_operation,
    "propose": open_proposal,
    "vote": vote_on_proposal,
    "enact": enact_proposal,
    "register": apply_registration,
    "metadata": update_metadata,
}


def control_transaction(record, payload):
    """What the rules look at, of a sealed record whose signatures are verified and of its payload bytes."""
    try:
        value = read_json(payload)
    except (Refused, ValueError):
        value = None
    signers = [{name: each[name] for name in ("publicKey", "algorithm")} for each in record["signatures"]]
    return {**record, "signers": signers, "payload": value}


def begin_docket(rules, at):
    """Changes by time alone: validators whose grace is over leave, within the limit of changes of one docket."""
    after = rules
    for each in rules["validators"]:
        if each["status"] != "Active" or "ejectAt" not in each or not is_over(each["ejectAt"], at):
            continue
        validators = replaced(after["validators"], each, with_status(each, "Removed", at["docketNumber"] + 1))
        following = {**after, "validators": validators, "validatorSetVersion": after["validatorSetVersion"] + 1}
        try:
            check_set_change(rules, following)
        except Refused:
            break
        after = following
    return after


def check_set_change(before, after):
    """Limits of one docket: how many members change, and how few may remain of the previous set."""
    changes, old, left = count_set_changes(before, after), len(active_members(before)), len(active_members(after))
    if changes == 0:
        return
    need(changes <= max(1, old // 3), "the docket changes too many validators", "VAL_PERM_016")
    policy = after["policy"]
    least = max(policy["validators"]["minValidators"], quorum(old, policy["consensus"]["signatureThresholdMin"]))
    need(left >= old or left >= least, "the change would leave too few validators", "VAL_PERM_011")


def is_governance(transaction):
    """Whether it may change the rules; the publication of the governance blueprint itself does not."""
    return transaction.get("blueprintId") == BLUEPRINT and transaction.get("actionId") != PUBLISH_ACTION


def fold_control(before, rules, transaction, at):
    """The rules after one more control transaction of a docket; `before`: the rules before the docket."""
    if not is_governance(transaction):
        check_signers(rules, transaction)
        return rules
    stage, kind = ACTIONS.get(transaction.get("actionId"), (None, None))
    if stage is None:
        check_signers(rules, transaction)
        raise Refused("the action is not part of the blueprint", "VAL_SCHEMA_004")
    after = STAGES[stage](rules, transaction, kind, at)
    after = {**after, "controlCount": rules["controlCount"] + 1}
    check_set_change(before, after)
    for name in ("proposals", "enacted"):
        after[name] = [each for each in after[name] if not is_over(each["expiresAt"], at)]
    return after


def fold_docket(rules, docket, transactions):
    """The rules after a docket {docketNumber, timestamp} with the records and payload bytes of its transactions."""
    at = {"docketNumber": docket["docketNumber"], "timestamp": docket["timestamp"]}
    for record, payload in transactions:
        need(record["type"] != "Genesis", "a register begins once", "VAL_PERM_002")
        check_algorithms(rules["cryptoPolicy"], [each["algorithm"] for each in record["signatures"]])
        is_free = not rules["policy"]["consensus"]["requireBoundTxId"]
        is_derived = is_free or record["bound"] or is_publication(record, payload)
        need(is_derived, "the register requires derived ids", "VAL_STRUCT_011")
    after = begin_docket(rules, at)
    for record, payload in transactions:
        if record["type"] == "Control":
            after = fold_control(rules, after, control_transaction(record, payload), at)
    return after


def check_genesis(docket, record, payload, register):
    """Docket 0 contains only the genesis transaction and what follows from it. Returns the first rules."""
    genesis = read_json(payload)
    need(record["type"] == "Genesis" and len(docket["transactionIds"]) == 1, "docket 0 holds exactly the genesis")
    need(genesis["registerId"] == register, "the genesis record names another register")
    check_genesis_record(genesis)
    rules = genesis_rules(genesis, record["signatures"][0])
    signer = rules["systemKey"]
    address = wallet_address(signer["algorithm"], unb64(signer["publicKey"]))
    need(record["metadata"]["SystemWalletAddress"] == address, "the genesis is signed by another key than it names")
    return rules
