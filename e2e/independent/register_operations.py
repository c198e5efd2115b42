"""Operations that a roster decides: with their approvals in one transaction, or as proposals that are voted on.

Each function gives the rules after one transaction, or raises Refused. `at`: number and timestamp of the docket that
seals it; time is judged by that timestamp alone.
"""
import register_shapes as shapes
from ledger_formats import (
    TICKS_PER_SECOND,
    Refused,
    jcs,
    member_did,
    need,
    operation_id,
    roster_hash,
    suspension_id,
    ticks,
    timestamp_text,
)
from register_effects import (
    BLUEPRINT,
    EFFECTS,
    active_members,
    find,
    proves_double_sign,
    register_validator,
    replaced,
    same_key,
    turns_only_dev_mode_off,
    update_crypto_policy,
)
from register_votes import (
    approvals_among,
    check_proposer,
    check_signers,
    count_votes,
    eligible_voters,
    is_accepted,
    is_system_signed,
    may_bypass,
    required_approvals,
    roster_signers,
    vote,
    votes_of,
)

DAY = 86_400 * TICKS_PER_SECOND
FUTURE_SKEW, OLDEST_PROPOSAL = 300 * TICKS_PER_SECOND, 3_600 * TICKS_PER_SECOND
LAST_MOMENT = "9999-12-31T23:59:59.9999990+00:00"
LONGEST_TTL_DAYS = 90
MAX_PAYLOAD_DEPTH = 32
MAX_OPERATION_BYTES, MAX_PROPOSALS, MAX_ENACTED, MAX_DEPTH = 32_768, 64, 2_000, 32


def is_plain(value, levels):
    """Whether data can become part of the rules, which hold it some levels deeper and which every language must read."""
    if not isinstance(value, (dict, list)):
        return True
    if levels == 0 or (isinstance(value, dict) and "__proto__" in value):
        return False
    return all(is_plain(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value))


def shaped(shape, transaction, rules=None):
    """The payload in its shape; with `rules` it must name their register."""
    payload = transaction["payload"]
    need(is_plain(payload, MAX_PAYLOAD_DEPTH), "the payload is nested too deeply or has __proto__", "VAL_SCHEMA_001")
    shape(payload, "payload")
    need(rules is None or payload["registerId"] == rules["registerId"], "it is for another register", "VAL_CHAIN_002")
    return payload


# ---------------------------------------------------------------- operations


def is_over(end, at):
    return ticks(end) <= ticks(at["timestamp"])


def operation_end(operation, ttl_days):
    latest = ticks(operation["proposedAt"]) + ttl_days * DAY
    return timestamp_text(max(0, min(ticks(operation.get("expiresAt", LAST_MOMENT)), latest)))


def check_operation(rules, payload, at):
    """What every operation must meet in any form: size, roster, time, and that it is not enacted."""
    operation, before = payload["operation"], payload["rosterHashBefore"]
    need(len(jcs(operation)) <= MAX_OPERATION_BYTES, "the operation is too large", "VAL_SIZE_001")
    need(before == roster_hash(rules["registerId"], rules["roster"]), "the roster changed", "VAL_PERM_009")
    is_early = ticks(operation["proposedAt"]) > ticks(at["timestamp"]) + FUTURE_SKEW
    end = operation_end(operation, rules["policy"]["governance"]["proposalTtlDays"]) if not is_early else None
    need(not is_early and not is_over(end, at), "the operation is not yet or no longer valid", "VAL_PERM_013")
    check_not_enacted(rules, payload)


def check_not_enacted(rules, payload):
    identity = operation_id(rules["registerId"], payload["operation"], payload["rosterHashBefore"])
    need(find(rules["enacted"], "operationId", identity) is None, "the operation is enacted already", "VAL_PERM_014")
    return identity


def effect_of(rules, payload, at):
    """The rules after the operation; rosterHashAfter must follow from it."""
    operation = payload["operation"]
    after = EFFECTS[operation["operationType"]](rules, operation, at)
    follows = roster_hash(rules["registerId"], after["roster"]) == payload["rosterHashAfter"]
    need(follows, "rosterHashAfter does not follow from the operation", "VAL_SCHEMA_001")
    return after


def enact_operation(rules, payload, at):
    operation = payload["operation"]
    identity = check_not_enacted(rules, payload)
    after = effect_of(rules, payload, at)
    if operation["operationType"] in ("policy-update", "crypto-policy-update"):
        return after  # it names its version, and never fits twice
    return remember(after, identity, operation)


def remember(rules, identity, operation):
    enacted = [*rules["enacted"], {"operationId": identity, "expiresAt": operation_end(operation, LONGEST_TTL_DAYS)}]
    need(len(enacted) <= MAX_ENACTED, "too many operations are remembered", "VAL_PERM_018")
    return {**rules, "enacted": enacted}


def apply_operation(rules, transaction, kind, at):
    """An operation with its approvals in one transaction."""
    has_operation = isinstance(transaction["payload"], dict) and "operation" in transaction["payload"]
    if kind == "crypto-policy-update" and not has_operation:
        return turn_dev_mode_off(rules, transaction)
    payload = shaped(shapes.operation_payload, transaction)
    operation = payload["operation"]
    need(operation["operationType"] == kind, "the action is for another operation", "VAL_SCHEMA_001")
    check_proposer(rules, transaction, operation)
    check_operation(rules, payload, at)
    check_evidence(rules, operation, at)
    after = enact_operation(rules, payload, at)
    votes = votes_of(rules, transaction, payload)
    need(is_accepted(operation, votes), "the target has not accepted", "VAL_PERM_010")
    formula = rules["policy"]["governance"]["quorumFormula"]
    required = required_approvals(formula, len(eligible_voters(rules, operation)))
    is_decided = approvals_among(votes) >= required or may_bypass(rules, operation)
    need(is_decided, f"{approvals_among(votes)} of {required} approvals count", "VAL_PERM_008")
    return after


def turn_dev_mode_off(rules, transaction):
    """The one change of a policy that the installation's key may make alone."""
    check_signers(rules, transaction)
    payload = shaped(shapes.crypto_update_payload, transaction, rules)
    after = update_crypto_policy(rules, payload["cryptoPolicy"])
    is_only = turns_only_dev_mode_off(rules["cryptoPolicy"], payload["cryptoPolicy"])
    need(is_only and is_system_signed(rules, transaction), "too few signers", "VAL_PERM_008")
    return after


def update_metadata(rules, transaction, kind, at):
    check_signers(rules, transaction)
    need(is_system_signed(rules, transaction), "the installation's key changes these", "VAL_PERM_003")
    payload = shaped(shapes.metadata_payload, transaction, rules)
    named = {"name": "title", "description": "description", "metadata": "metadata"}
    return {**rules, **{ours: payload[theirs] for ours, theirs in named.items() if theirs in payload}}


def apply_registration(rules, transaction, kind, at):
    """Registers a validator: by itself, or by a sender of control transactions with its proof of possession."""
    try:
        payload, failure = shaped(shapes.register_payload, transaction), None
    except Refused as refusal:
        payload, failure = None, refusal
    own = [payload["validatorEntry"]] if payload else []
    allowed = [*own, rules["systemKey"], *rules["roster"]]
    known = all(any(same_key(each, key) for each in allowed) for key in transaction["signers"])
    need(known, "a signer may not submit control transactions", "VAL_PERM_001")
    if failure:
        raise failure
    need(payload["registerId"] == rules["registerId"], "it is for another register", "VAL_CHAIN_002")
    return register_validator(rules, payload["validatorEntry"], at)


# ---------------------------------------------------------------- proposals


def open_proposal(rules, transaction, kind, at):
    payload = shaped(shapes.operation_payload, transaction)
    operation, governance = payload["operation"], rules["policy"]["governance"]
    is_suspension = operation["operationType"] == "suspend-validator"
    names_slots = is_suspension and operation.get("evidence", {}).get("kind") == "missed-slots"
    need(kind is None or names_slots, "a liveness violation names missed slots", "VAL_SCHEMA_001")
    check_opener(rules, transaction, payload, at)
    check_operation(rules, payload, at)
    check_evidence(rules, operation, at)
    effect_of(rules, payload, at)
    asked = question_of(rules, payload)
    if asked is not None and find(rules["enacted"], "operationId", asked) is None:
        rules = remember(rules, asked, operation)
    kept = rules["proposals"]
    if len(kept) >= MAX_PROPOSALS:
        before = payload["rosterHashBefore"]
        kept = [each for each in kept if each["rosterHashBefore"] == before and not is_over(each["expiresAt"], at)]
    need(len(kept) < MAX_PROPOSALS, "too many proposals are open", "VAL_PERM_018")
    eligible = len(eligible_voters(rules, operation))
    opened = {
        "proposalId": transaction["txId"],
        **{name: payload[name] for name in ("operation", "rosterHashBefore", "rosterHashAfter")},
        "status": "Pending",
        "openedAt": at["timestamp"],
        "openedInDocket": at["docketNumber"],
        "expiresAt": operation_end(operation, governance["proposalTtlDays"]),
        "quorumFormula": governance["quorumFormula"],
        "eligible": eligible,
        "required": required_approvals(governance["quorumFormula"], eligible),
        "votes": [],
    }
    proposal, _ = with_votes(opened, votes_of(rules, transaction, payload), transaction, at)
    return {**rules, "proposals": [*kept, proposal]}


def check_opener(rules, transaction, payload, at):
    """Owner and admins; with evidence also the installation's key or active validators, which have no vote."""
    operation, members = payload["operation"], active_members(rules)
    observed = all(any(same_key(each, key) for each in members) for key in transaction["signers"])
    if operation.get("evidence") is None or not (observed or is_system_signed(rules, transaction)):
        return check_proposer(rules, transaction, operation)
    check_observer(rules, transaction, payload, at)


def check_observer(rules, transaction, payload, at):
    """Observers propose once a term of a validator, with a fresh proposal, and never about themselves."""
    operation = payload["operation"]
    is_first = operation["proposerDid"] == member_did(transaction["senderAddress"])
    need(is_first, "the proposer is not the first signer", "VAL_PERM_003")
    accused = find(rules["validators"], "validatorId", operation["validatorId"])
    accuses_itself = accused is not None and any(same_key(accused, key) for key in transaction["signers"])
    need(not accuses_itself, "a validator does not propose its own suspension", "VAL_PERM_003")
    is_fresh = ticks(at["timestamp"]) - ticks(operation["proposedAt"]) <= OLDEST_PROPOSAL
    need(is_fresh and "expiresAt" not in operation, "the proposal is not a fresh one", "VAL_PERM_013")
    need(not is_asked(rules, payload, at), "the suspension is proposed already", "VAL_PERM_018")


def is_asked(rules, payload, at):
    question, operation = question_of(rules, payload), payload["operation"]
    if question is not None:
        return find(rules["enacted"], "operationId", question) is not None
    same = ("suspend-validator", operation["validatorId"], operation["evidence"]["kind"])
    named = lambda o: (o["operationType"], o.get("validatorId"), o.get("evidence", {}).get("kind"))
    return any(named(each["operation"]) == same and not is_over(each["expiresAt"], at) for each in rules["proposals"])


def question_of(rules, payload):
    operation = payload["operation"]
    if operation["operationType"] != "suspend-validator" or operation.get("evidence", {}).get("kind") != "double-sign":
        return None
    accused = find(rules["validators"], "validatorId", operation["validatorId"])
    return accused and suspension_id(rules["registerId"], accused, payload["rosterHashBefore"])


def check_evidence(rules, operation, at):
    """Evidence must prove what it is given for; two messages count against the key of the validator's present term."""
    evidence = operation.get("evidence")
    if evidence is None:
        return
    if evidence["kind"] == "missed-slots":
        is_proven = all(a < b for a, b in zip(evidence["dockets"], evidence["dockets"][1:]))
    else:
        accused = find(rules["validators"], "validatorId", operation["validatorId"])
        first = at["docketNumber"] + 1 if accused is None else accused["effectiveFromDocket"]
        is_of_term = first <= evidence["height"] <= at["docketNumber"]
        is_proven = is_of_term and proves_double_sign(rules["registerId"], evidence, accused)
    need(is_proven, "the evidence does not prove it", "VAL_PERM_019")


def with_votes(proposal, votes, transaction, at):
    """The proposal with more votes, and whether they reject it."""
    operation = proposal["operation"]
    cast = [*proposal["votes"], *({**each, "txId": transaction["txId"], "at": at["timestamp"]} for each in votes)]
    approvals = approvals_among(cast)
    if approvals >= proposal["required"] and is_accepted(operation, cast):
        return {**proposal, "votes": cast, "status": "Approved", "approvedAt": at["timestamp"]}, False
    is_declined = is_accepted(operation, cast, answer=False)
    is_hopeless = proposal["eligible"] - (len(cast) - approvals) < proposal["required"]
    return {**proposal, "votes": cast}, is_declined or is_hopeless


def find_open(rules, proposal_id, at):
    found = find(rules["proposals"], "proposalId", proposal_id)
    need(found is not None, "the proposal is not known or no longer open", "VAL_PERM_012")
    need(not is_over(found["expiresAt"], at), "the proposal is expired", "VAL_PERM_013")
    is_same = found["rosterHashBefore"] == roster_hash(rules["registerId"], rules["roster"])
    need(is_same, "the roster changed since the proposal", "VAL_PERM_009")
    return found


def vote_on_proposal(rules, transaction, kind, at):
    payload = shaped(shapes.vote_payload, transaction)
    need("decision" in payload or "approvals" in payload, "there is no vote", "VAL_SCHEMA_001")
    check_signers(rules, transaction)
    found = find_open(rules, payload["proposalId"], at)
    need(found["status"] == "Pending", "the proposal is approved", "VAL_PERM_012")
    sender = member_did(transaction["senderAddress"])
    is_member = find(roster_signers(rules, transaction), "subject", sender) is not None
    own = []
    if "decision" in payload and is_member:
        own = [vote(sender, payload["decision"] == "approve", payload.get("comment"))]
    counted = count_votes(rules, found["operation"], found["rosterHashBefore"], payload.get("approvals", []), own)
    new = [each for each in counted if find(found["votes"], "did", each["did"]) is None]
    need(new, "no vote of the transaction counts", "VAL_PERM_015")
    proposal, is_rejected = with_votes(found, new, transaction, at)
    others = [each for each in rules["proposals"] if each is not found]
    return {**rules, "proposals": others if is_rejected else replaced(rules["proposals"], found, proposal)}


def enact_proposal(rules, transaction, kind, at):
    payload = shaped(shapes.enact_payload, transaction)
    check_signers(rules, transaction)
    found = find_open(rules, payload["enactsProposalId"], at)
    is_short = approvals_among(found["votes"]) < found["required"]
    need(found["status"] == "Approved", "the proposal is not approved", "VAL_PERM_008" if is_short else "VAL_PERM_010")
    after = enact_operation(rules, found, at)
    return {**after, "proposals": [each for each in after["proposals"] if each is not found]}


def find_decisive_approval(rules, transaction):
    """(member, place) of an approval without which a transaction would not have been sealed; None: there is none."""
    payload = transaction["payload"]
    if transaction.get("blueprintId") != BLUEPRINT or not isinstance(payload, dict):
        return None
    if "decision" not in payload and len(payload.get("approvals", [])) == 1:
        return "approvals", 0
    if transaction["actionId"] == "control.governance.propose" or "operation" not in payload:
        return None
    operation = payload["operation"]
    formula = rules["policy"]["governance"]["quorumFormula"]
    required = required_approvals(formula, len(eligible_voters(rules, operation)))
    approvals = operation.get("approvalSignatures", [])
    for place in range(len(approvals)):
        rest = {**operation, "approvalSignatures": approvals[:place] + approvals[place + 1 :]}
        left = approvals_among(votes_of(rules, transaction, {**payload, "operation": rest}))
        if left < required and not may_bypass(rules, operation):
            return "operation", place
    return None
