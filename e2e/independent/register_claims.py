"""Compares an installation's answers about a register with the decisions of its sealed control transactions."""
from ledger_formats import MEMBER, key_did, need, quorum, roster_hash, ticks, timestamp_text
from register_effects import active_members, voters
from register_policy import owner_may_bypass
from register_votes import approvals_among, required_approvals


def shown(timestamp):
    """A timestamp of the ledger as the interface shows it: milliseconds and Z."""
    return timestamp_text(ticks(timestamp))[:23] + "Z"


def same(claimed, replayed, what):
    need(claimed == replayed, f"{what}: the interface says {claimed}, the chain {replayed}")


def pick(value, names):
    return {name: value[name] for name in names if name in value}


def check_roster(rules, said):
    members = [
        {
            "did": entry["subject"],
            "walletAddress": entry["subject"][len(MEMBER) :],
            **pick(entry, ("role", "publicKey", "algorithm")),
            "grantedAt": shown(entry["grantedAt"]),
            "votes": entry in voters(rules),
        }
        for entry in rules["roster"]
    ]
    by_did = lambda entry: entry["did"]  # noqa: E731
    claimed = [pick(entry, members[0]) for entry in said["members"]]
    same(sorted(claimed, key=by_did), sorted(members, key=by_did), "roster")
    same(said["rosterVersion"], rules["rosterVersion"], "version of the roster")
    same(said["rosterHash"], roster_hash(rules["registerId"], rules["roster"]), "hash of the roster")
    same(said["controlTransactionCount"], rules["controlCount"], "number of control transactions")
    count, formula = len(voters(rules)), rules["policy"]["governance"]["quorumFormula"]
    needed = {"formula": formula, "voters": count, "required": required_approvals(formula, count)}
    same(said["quorum"], {**needed, "ownerCanBypass": owner_may_bypass(rules["policy"], count)}, "quorum")


def check_validators(rules, said, approved):
    replayed = {
        each["validatorId"]: {
            "did": key_did(each),
            **pick(each, ("publicKey", "algorithm", "approvedBy", "effectiveFromDocket")),
            "status": each["status"].lower(),
            "registeredAt": shown(each["registeredAt"]),
            **{name: shown(each[name]) for name in ("approvedAt", "ejectAt") if name in each},
        }
        for each in rules["validators"]
    }
    claimed = {each.pop("validatorId"): each for each in [dict(each) for each in said["validators"]]}
    same(claimed, replayed, "validators")
    let_in = [
        each["validatorId"]
        for each in rules["validators"]
        if each["status"] == "Active" or (each["status"] == "Suspended" and "approvedAt" in each)
    ]
    same(sorted(each["validatorId"] for each in approved["validators"]), sorted(let_in), "approved validators")
    same(approved["registrationMode"], rules["policy"]["validators"]["registrationMode"], "registration mode")
    same(approved["validatorSetVersion"], rules["validatorSetVersion"], "version of the validator set")
    threshold = rules["policy"]["consensus"]["signatureThresholdMin"]
    same(approved["quorum"], quorum(len(active_members(rules)), threshold), "quorum of the validators")


def check_versions(said, replayed, name):
    """History of a policy: every version, newest first, with the transaction that brought it."""
    claimed = [(each["version"], each["txId"], each["docketNumber"], each[name]) for each in said]
    sealed = [(each["version"], tx_id, number, each) for each, tx_id, number in reversed(replayed)]
    same(claimed, sealed, f"history of {name}")


def check_proposals(replay, said):
    """Proposals and their votes. Time closes a proposal at once in the interface, and with a docket on the chain."""
    claimed = {each["proposalId"]: each for each in said}
    is_open = {each["proposalId"]: each["status"] for each in replay.rules["proposals"]}
    same(sorted(claimed), sorted({**replay.closed, **is_open}), "proposals")
    for name, status in replay.closed.items():
        same(claimed[name]["status"], status, f"status of proposal {name}")
    for each in replay.rules["proposals"]:
        found = claimed[each["proposalId"]]
        need(found["status"] in (each["status"], "Expired"), f"status of proposal {each['proposalId']}")
        votes = [(vote["did"], vote["isApproval"], vote["txId"]) for vote in each["votes"]]
        same([(vote["did"], vote["isApproval"], vote["txId"]) for vote in found["votes"]], votes, "votes")
        numbers = (approvals_among(each["votes"]), each["required"], each["eligible"])
        same((found["votesReceived"], found["votesRequired"], found["votesEligible"]), numbers, "number of votes")


def check_claims(replay, said):
    """`replay`: a Replay of all dockets that were collected; `said`: the answers of the interface."""
    rules = replay.rules
    facts = {"registerId": rules["registerId"], "title": rules["name"], "description": rules.get("description")}
    facts.update(purpose=rules["purpose"], metadata=rules["metadata"], height=replay.height)
    facts.update(devMode=rules["cryptoPolicy"]["devMode"], policyVersion=rules["policy"]["version"])
    same({name: said["register"].get(name) for name in facts}, facts, "register")
    check_roster(rules, said["roster"])
    same(said["policy"]["policy"], rules["policy"], "policy")
    is_default = rules["policy"]["version"] == 1 and "updatedBy" not in rules["policy"]
    same(said["policy"]["isDefault"], is_default, "isDefault of the policy")
    same(said["cryptoPolicy"]["cryptoPolicy"], rules["cryptoPolicy"], "crypto policy")
    check_versions(said["policies"], replay.versions["policy"], "policy")
    check_versions(said["cryptoPolicies"], replay.versions["cryptoPolicy"], "cryptoPolicy")
    check_validators(rules, said["validators"], said["approved"])
    check_proposals(replay, said["proposals"])
