"""Effects of operations: the rules of a register after each, or Refused. Authority is judged elsewhere."""
from ledger_formats import (
    TICKS_PER_SECOND,
    PREVOTE,
    PRECOMMIT,
    PROPOSAL,
    key_did,
    need,
    possession_bytes,
    sign_bytes,
    text_signature_holds,
    ticks,
    timestamp_text,
)
from register_policy import accepts_alone, check_deadlock, read_policy

MAX_ROSTER, MAX_VALIDATORS, MAX_PENDING, MAX_REMOVED = 25, 100, 100, 100
BLUEPRINT = "register-governance-v1"


def same_key(left, right):
    return (left["algorithm"], left["publicKey"]) == (right["algorithm"], right["publicKey"])


def find(entries, name, value):
    return next((entry for entry in entries if entry[name] == value), None)


def replaced(entries, old, new):
    return [new if entry is old else entry for entry in entries]


def voters(rules):
    return [entry for entry in rules["roster"] if entry["role"] in ("Owner", "Admin")]


def active_members(rules):
    """V(h+1) after docket h, in the order of indexes and proposers."""
    active = [each for each in rules["validators"] if each["status"] == "Active"]
    return sorted(active, key=lambda each: each["validatorId"])


# ---------------------------------------------------------------- roster


def with_roster(rules, roster):
    return {**rules, "roster": roster, "rosterVersion": rules["rosterVersion"] + 1}


def add_member(rules, operation, at):
    target, role, key = operation["targetDid"], operation["targetRole"], operation["targetKey"]
    need(role != "Owner", "ownership is transferred, not given", "VAL_PERM_006")
    need(key_did(key) == target, "the key is not that of the member", "VAL_SIG_003")
    need(find(rules["roster"], "subject", target) is None, "the member is on the roster already", "VAL_PERM_018")
    need(len(rules["roster"]) < MAX_ROSTER, "the roster is full", "VAL_PERM_018")
    entry = {"role": role, "subject": target, **key, "grantedAt": at["timestamp"]}
    return with_roster(rules, [*rules["roster"], entry])


def target_of(rules, operation):
    target = find(rules["roster"], "subject", operation["targetDid"])
    need(target is not None, "the target is not on the roster", "VAL_PERM_004")
    return target


def remove_member(rules, operation, at):
    target = target_of(rules, operation)
    need(target["role"] != "Owner", "the owner stays until ownership is transferred", "VAL_PERM_005")
    return with_roster(rules, [entry for entry in rules["roster"] if entry is not target])


def change_role(rules, operation, at):
    target, role = target_of(rules, operation), operation["targetRole"]
    need(target["role"] != "Owner", "ownership is transferred, not taken", "VAL_PERM_005")
    need(role not in ("Owner", target["role"]), "the target may not hold the role", "VAL_PERM_006")
    changed = {**target, "role": role, "grantedAt": at["timestamp"]}
    return with_roster(rules, replaced(rules["roster"], target, changed))


def transfer_ownership(rules, operation, at):
    target, owner = target_of(rules, operation), find(rules["roster"], "role", "Owner")
    need(target["role"] == "Admin", "only an Admin can become the owner", "VAL_PERM_006")
    roster = replaced(rules["roster"], owner, {**owner, "role": "Admin", "grantedAt": at["timestamp"]})
    return with_roster(rules, replaced(roster, target, {**target, "role": "Owner", "grantedAt": at["timestamp"]}))


# ---------------------------------------------------------------- validators


def with_validators(rules, validators):
    removed = sorted((v for v in validators if v["status"] == "Removed"), key=lambda v: v["effectiveFromDocket"])
    forgotten = removed[: max(0, len(removed) - MAX_REMOVED)]
    kept = [v for v in validators if not any(v is each for each in forgotten)]
    return {**rules, "validators": kept, "validatorSetVersion": rules["validatorSetVersion"] + 1}


def without(entry, *names):
    return {name: value for name, value in entry.items() if name not in names}


def with_status(validator, status, docket_number):
    return {**without(validator, "ejectAt"), "status": status, "effectiveFromDocket": docket_number}


def check_validator_key(rules, entry):
    """Ed25519, unused on the register, with a valid proof of possession."""
    need(entry["algorithm"] == "ED25519", "keys of validators are Ed25519", "VAL_SIG_001")
    for other in rules["validators"]:
        is_free = not same_key(other, entry) or other["validatorId"] == entry["validatorId"]
        need(is_free, f"the key is that of {other['validatorId']}", "VAL_PERM_017")
    message = possession_bytes(rules["registerId"], entry)
    need(text_signature_holds(entry, entry["proofOfPossession"], message), "proof of possession", "VAL_SIG_002")


def check_room(rules):
    most = min(rules["policy"]["validators"]["maxValidators"], MAX_VALIDATORS)
    need(len(active_members(rules)) < most, f"the register has at most {most} validators", "VAL_POLICY_006")


def put_validator(rules, known, entry, **facts):
    merged = {**entry, "registeredAt": facts.pop("at"), **facts}
    if known is None:
        return with_validators(rules, [*rules["validators"], merged])
    merged["registeredAt"] = known["registeredAt"]
    return with_validators(rules, replaced(rules["validators"], known, merged))


def register_validator(rules, entry, at):
    """Active at once on a public register, else pending approval."""
    is_public = rules["policy"]["validators"]["registrationMode"] == "public"
    known = find(rules["validators"], "validatorId", entry["validatorId"])
    may_enter = known is None or (is_public and known["status"] == "Pending" and same_key(known, entry))
    need(may_enter, "the validator is known already", "VAL_PERM_017")
    check_validator_key(rules, entry)
    if is_public:
        check_room(rules)
    else:
        waiting = [each for each in rules["validators"] if each["status"] == "Pending"]
        need(len(waiting) < MAX_PENDING, "too many validators wait", "VAL_PERM_018")
    facts = {"status": "Active" if is_public else "Pending", "effectiveFromDocket": at["docketNumber"] + 1}
    return put_validator(rules, known, entry, at=at["timestamp"], **facts)


def add_validator(rules, operation, at):
    """Approves a validator that is pending, suspended, joined in public mode, was removed, or is new."""
    entry = operation["validatorEntry"]
    known = find(rules["validators"], "validatorId", entry["validatorId"])
    status = known["status"] if known else None
    if status in ("Pending", "Suspended"):
        need(same_key(known, entry), "the validator has another key", "VAL_PERM_017")
    if status == "Active":
        need("approvedBy" not in known and same_key(known, entry), "the validator is approved", "VAL_PERM_017")
    check_validator_key(rules, entry)
    if status != "Active":
        check_room(rules)
    since = known["effectiveFromDocket"] if status == "Active" else at["docketNumber"] + 1
    facts = {"status": "Active", "effectiveFromDocket": since}
    facts.update(approvedAt=at["timestamp"], approvedBy=operation["proposerDid"])
    return put_validator(rules, known, entry, at=at["timestamp"], **facts)


def remove_validator(rules, operation, at):
    known = find(rules["validators"], "validatorId", operation["validatorId"])
    need(known is not None and known["status"] != "Removed", "the validator is not known", "VAL_PERM_017")
    changed = with_status(known, "Removed", at["docketNumber"] + 1)
    return with_validators(rules, replaced(rules["validators"], known, changed))


def suspend_validator(rules, operation, at):
    known = find(rules["validators"], "validatorId", operation["validatorId"])
    need(known is not None and known["status"] == "Active", "the validator is not active", "VAL_PERM_017")
    changed = with_status(known, "Suspended", at["docketNumber"] + 1)
    return with_validators(rules, replaced(rules["validators"], known, changed))


def rotate_validator_key(rules, operation, at):
    entry = operation["validatorEntry"]
    known = find(rules["validators"], "validatorId", entry["validatorId"])
    fits = known is not None and known["status"] == "Active" and not same_key(known, entry)
    need(fits, "the validator is not active, or has the key", "VAL_PERM_017")
    check_validator_key(rules, entry)
    changed = {**known, **entry, "effectiveFromDocket": at["docketNumber"] + 1}
    return with_validators(rules, replaced(rules["validators"], known, changed))


def count_set_changes(before, after):
    """Members that two sets differ in: added, removed or with another key."""
    old = {each["validatorId"]: each for each in active_members(before)}
    new = {each["validatorId"]: each for each in active_members(after)}
    rekeyed = [name for name in old.keys() & new.keys() if not any(same_key(new[name], each) for each in old.values())]
    return len(old.keys() ^ new.keys()) + len(rekeyed)


def proves_double_sign(register, evidence, key):
    """Two messages of one height, round and kind that differ in docket or polka, both signed by the key."""
    first, second = evidence["first"], evidence["second"]
    if first["polRound"] == second["polRound"] and first.get("docket") == second.get("docket"):
        return False
    return all(signed_message_holds(register, evidence, each, key) for each in (first, second))


def signed_message_holds(register, evidence, message, key):
    kind, pol_round = evidence["type"], message["polRound"]
    if kind == PROPOSAL:
        fits = "docket" in message and pol_round < evidence["round"]
    else:
        fits = kind in (PREVOTE, PRECOMMIT) and pol_round == -1
    if not fits or evidence["round"] >= 2**31:
        return False
    facts = {name: evidence[name] for name in ("networkId", "height", "round")}
    data = sign_bytes(kind, {**message, **facts, "registerId": register})
    return text_signature_holds(key, message["signature"], data)


# ---------------------------------------------------------------- policies


def update_policy(rules, operation, at):
    """A new policy, stamped with the docket that brings it. Updates leave the list of approved validators alone."""
    policy, validators = read_policy(operation["policy"]), rules["policy"]["validators"]
    need(policy["version"] == rules["policy"]["version"] + 1, "the policy is not the next version", "VAL_POLICY_004")
    need(policy["governance"]["blueprintVersion"] == BLUEPRINT, "another governance blueprint", "VAL_POLICY_005")
    check_deadlock(policy)
    size, new = len(active_members(rules)), policy["validators"]
    need(new["minValidators"] <= size <= new["maxValidators"], "number of validators", "VAL_POLICY_006")
    closes = validators["registrationMode"] == "public" and new["registrationMode"] == "consent"
    mode = operation.get("transitionMode")
    need(not closes or mode is not None, "a change to consent needs a transitionMode", "VAL_POLICY_005")
    policy["validators"] = {**new, "approvedValidators": validators["approvedValidators"]}
    policy.update(updatedAt=at["timestamp"], updatedBy=operation["proposerDid"])
    changed = {**rules, "policy": policy}
    if new["registrationMode"] == "public":
        return with_ejections(changed, None)
    if not closes:
        return changed
    grace = 0 if mode == "immediate" else new["operationalTtlSeconds"]
    return with_ejections(changed, timestamp_text(ticks(at["timestamp"]) + grace * TICKS_PER_SECOND))


def with_ejections(rules, eject_at):
    """Validators without approval leave the set at the first docket that is not earlier than `eject_at`."""

    def judged(each):
        is_due = eject_at is not None and each["status"] == "Active" and "approvedBy" not in each
        return {**without(each, "ejectAt"), **({"ejectAt": eject_at} if is_due else {})}

    return {**rules, "validators": [judged(each) for each in rules["validators"]]}


def update_crypto_policy(rules, policy):
    """A new crypto policy. Development mode cannot be switched on again, and no governing key is excluded."""
    before = rules["cryptoPolicy"]
    need(before["devMode"] or not policy["devMode"], "development mode does not come back", "VAL_POLICY_003")
    need(policy["version"] == before["version"] + 1, "the crypto policy is not the next version", "VAL_POLICY_004")
    required, accepted = policy["requiredSignatureAlgorithms"], policy["acceptedSignatureAlgorithms"]
    need(set(required) <= set(accepted), "a required algorithm is not accepted", "VAL_POLICY_005")
    shut_out = [entry for entry in voters(rules) if not accepts_alone(policy, entry["algorithm"])]
    need(not shut_out, "the crypto policy would shut out a key that governs", "VAL_POLICY_007")
    return {**rules, "cryptoPolicy": policy}


def turns_only_dev_mode_off(before, after):
    varying = ("version", "effectiveFrom", "devMode")
    return before["devMode"] and not after["devMode"] and without(before, *varying) == without(after, *varying)


EFFECTS = {
    "add-member": add_member,
    "remove-member": remove_member,
    "transfer-ownership": transfer_ownership,
    "change-role": change_role,
    "add-validator": add_validator,
    "remove-validator": remove_validator,
    "rotate-validator-key": rotate_validator_key,
    "suspend-validator": suspend_validator,
    "policy-update": update_policy,
    "crypto-policy-update": lambda rules, operation, at: update_crypto_policy(rules, operation["cryptoPolicy"]),
}
