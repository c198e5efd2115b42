"""The signers that may govern a register, and the votes on an operation that count."""
from ledger_formats import approval_digest, member_did, need, text_signature_holds
from register_effects import find, same_key, voters
from register_policy import owner_may_bypass

# ---------------------------------------------------------------- signers


def roster_signers(rules, transaction):
    return [entry for key in transaction["signers"] for entry in rules["roster"] if same_key(entry, key)]


def is_system_signed(rules, transaction):
    return all(same_key(key, rules["systemKey"]) for key in transaction["signers"])


def check_signers(rules, transaction):
    """A control label is granted by its signers: each of them is on the roster, or the installation's key."""
    found = [
        "System" if same_key(key, rules["systemKey"]) else (entry or {}).get("role")
        for key in transaction["signers"]
        for entry in [next((each for each in rules["roster"] if same_key(each, key)), None)]
    ]
    need(found and None not in found, "a signer may not submit control transactions", "VAL_PERM_001")
    need("Auditor" not in found, "an auditor decides nothing", "VAL_PERM_003")


def check_proposer(rules, transaction, operation):
    check_signers(rules, transaction)
    proposer = operation["proposerDid"]
    need(member_did(transaction["senderAddress"]) == proposer, "the proposer is not the first signer", "VAL_PERM_003")
    need(find(voters(rules), "subject", proposer) is not None, "the role does not allow the operation", "VAL_PERM_003")


# ---------------------------------------------------------------- votes


def required_approvals(formula, count):
    count = max(1, count)
    if formula == "strict-majority":
        return count // 2 + 1
    return min(count, 2 * count // 3 + 1) if formula == "supermajority" else count


def eligible_voters(rules, operation):
    """Owner and admins, without the target of a removal."""
    removed = operation["targetDid"] if operation["operationType"] == "remove-member" else None
    return [entry for entry in voters(rules) if entry["subject"] != removed]


def vote(did, is_approval, comment=None):
    return {"did": did, "isApproval": is_approval, **({} if comment is None else {"comment": comment})}


def count_votes(rules, operation, roster_hash_before, approvals, signed):
    """The votes that count: the first valid vote of each eligible voter, by the roster's key."""
    eligible = {entry["subject"]: entry for entry in eligible_voters(rules, operation)}
    votes = {}
    for each in approvals:
        did, is_approval = each["approverDid"], each["isApproval"]
        if did in eligible and did not in votes:
            digest = approval_digest(rules["registerId"], did, is_approval, operation, roster_hash_before)
            if text_signature_holds(eligible[did], each["signature"], digest, prehashed=True):
                votes[did] = vote(did, is_approval, each.get("comment"))
    for each in signed:
        if each["did"] in eligible and each["did"] not in votes:
            votes[each["did"]] = each
    return list(votes.values())


def votes_of(rules, transaction, payload):
    """The votes that an operation comes with: its approvals, and the signers' own."""
    signed = [vote(entry["subject"], True) for entry in roster_signers(rules, transaction)]
    operation = payload["operation"]
    return count_votes(rules, operation, payload["rosterHashBefore"], operation.get("approvalSignatures", []), signed)


def approvals_among(votes):
    return len([each for each in votes if each["isApproval"]])


def is_accepted(operation, votes, answer=True):
    """Whether the target of a transfer has accepted it (`answer` False: has declined)."""
    if operation["operationType"] != "transfer-ownership":
        return answer
    return any(each["did"] == operation["targetDid"] and each["isApproval"] is answer for each in votes)


def may_bypass(rules, operation):
    """An owner that may decide alone by the policy, on members only."""
    proposer = find(rules["roster"], "subject", operation["proposerDid"])
    is_owner = proposer is not None and proposer["role"] == "Owner"
    about_members = operation["operationType"] in ("add-member", "remove-member", "change-role")
    return is_owner and about_members and owner_may_bypass(rules["policy"], len(voters(rules)))
