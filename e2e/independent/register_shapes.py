"""Shapes of the payloads of control transactions: their members, and the values of each.

A shape is a function that raises Refused for anything else. `members` makes one for an object that has exactly the
members it names; "?" at the end of a name: the member may be absent.
"""
import re

from ledger_formats import (
    ALGORITHMS,
    MEMBER,
    Refused,
    b64,
    is_key_form,
    is_wallet_address,
    need,
    ticks,
    unb64,
)

ROLES = ("Owner", "Admin", "Auditor", "Designer")
VALIDATOR_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
HASH = re.compile(r"[0-9a-f]{64}")
SCHEMA = "VAL_SCHEMA_001"


def units(text):
    """The length of a text as the interface counts it: UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def fits(check, what):
    def shape(value, name):
        need(check(value), f"{name} {what}", SCHEMA)

    return shape


def text(least=0, most=1024):
    return fits(lambda v: isinstance(v, str) and least <= units(v) <= most, f"is not a text of {least} to {most}")


def whole(least, most=2**53 - 1):
    return fits(lambda v: is_whole(v) and least <= v <= most, f"is not a whole number from {least} to {most}")


def matching(pattern):
    return fits(lambda v: isinstance(v, str) and pattern.fullmatch(v), f"does not match {pattern.pattern}")


def one_of(*words):
    # `in` alone would accept 1 as true
    return fits(lambda v: any(type(v) is type(word) and v == word for word in words), f"is none of {words}")


def list_of(item, least=0, most=10_000):
    def shape(value, name):
        fits_length = isinstance(value, list) and least <= len(value) <= most
        need(fits_length, f"{name} is not a list of {least} to {most}", SCHEMA)
        for place, each in enumerate(value):
            item(each, f"{name}[{place}]")

    return shape


def members(also=None, **named):
    wanted = {name.rstrip("?"): (shape, name.endswith("?")) for name, shape in {**named, **(also or {})}.items()}

    def shape(value, name):
        need(isinstance(value, dict), f"{name} is not an object", SCHEMA)
        for each in value:
            need(each in wanted, f"{name}.{each} is not known", SCHEMA)
        for each, (inner, is_optional) in wanted.items():
            if each in value:
                inner(value[each], f"{name}.{each}")
            else:
                need(is_optional, f"{name}.{each} is missing", SCHEMA)

    return shape


def is_key_text(algorithm, value):
    try:
        raw = unb64(value)
    except (Refused, ValueError):
        return False
    return is_key_form(algorithm, raw) and b64(raw) == value


def with_key(shape):
    """A shape whose publicKey and algorithm belong together, in the one form that is hashed."""

    def both(value, name):
        shape(value, name)
        need(is_key_text(value["algorithm"], value["publicKey"]), f"{name}.publicKey is not in its form", SCHEMA)

    return both


flag = one_of(True, False)
version = one_of(2)
validator_id = matching(VALIDATOR_ID)
hash_text = matching(HASH)
timestamp = fits(lambda v: isinstance(v, str) and len(v) <= 64 and ticks(v) is not None, "is not a timestamp")
member = fits(
    lambda v: isinstance(v, str) and v.startswith(MEMBER) and is_wallet_address(v[len(MEMBER) :]), "is not a member"
)
algorithm = one_of(*ALGORITHMS)
key_members = {"publicKey": text(1), "algorithm": algorithm}
key = with_key(members(key_members))
validator_entry = with_key(members(key_members, validatorId=validator_id, proofOfPossession=text(1)))

crypto_policy = members(
    version=whole(1),
    acceptedSignatureAlgorithms=list_of(algorithm, 1),
    requiredSignatureAlgorithms=list_of(algorithm),
    acceptedEncryptionSchemes=list_of(text(1)),
    acceptedHashFunctions=list_of(text(1)),
    enforcementMode=one_of("Permissive", "Strict"),
    effectiveFrom=text(1),
    deprecatedAlgorithms=list_of(text(1)),
    devMode=flag,
)

approval = members(
    {"votedAt?": timestamp, "comment?": text(0, 500)}, approverDid=member, signature=text(1), isApproval=flag
)

signed_message = members(
    {"docket?": members(docketHash=hash_text, merkleRoot=hash_text, logRoot=hash_text)},
    polRound=whole(-1),
    validatorSetHash=hash_text,
    timestamp=text(1),
    signature=text(1),
)
EVIDENCE = {
    "double-sign": members(
        kind=one_of("double-sign"),
        networkId=text(1),
        type=one_of(1, 2, 3),
        height=whole(0),
        round=whole(0),
        first=signed_message,
        second=signed_message,
    ),
    "missed-slots": members(kind=one_of("missed-slots"), dockets=list_of(whole(1), 10, 100)),
}


def by_kind(shapes, member_name):
    def shape(value, name):
        kind = value.get(member_name) if isinstance(value, dict) else None
        need(isinstance(kind, str) and kind in shapes, f"{name}.{member_name} is not known", SCHEMA)
        shapes[kind](value, name)

    return shape


def operation_shape(kind, **named):
    every = {
        "operationType": one_of(kind),
        "proposerDid": member,
        "proposedAt": timestamp,
        "expiresAt?": timestamp,
        "justification?": text(0, 500),
        "status?": one_of("Pending", "Approved", "Rejected", "Expired", "Recorded"),
        "approvalSignatures?": list_of(approval, 0, 50),
    }
    return members({name.replace("_maybe", "?"): shape for name, shape in named.items()} | every)


anything = fits(lambda v: isinstance(v, dict), "is not an object")
OPERATIONS = {
    "add-member": operation_shape("add-member", targetDid=member, targetRole=one_of(*ROLES), targetKey=key),
    "remove-member": operation_shape("remove-member", targetDid=member),
    "transfer-ownership": operation_shape("transfer-ownership", targetDid=member),
    "change-role": operation_shape("change-role", targetDid=member, targetRole=one_of(*ROLES)),
    "add-validator": operation_shape("add-validator", validatorEntry=validator_entry),
    "remove-validator": operation_shape("remove-validator", validatorId=validator_id),
    "rotate-validator-key": operation_shape("rotate-validator-key", validatorEntry=validator_entry),
    "suspend-validator": operation_shape(
        "suspend-validator", validatorId=validator_id, evidence_maybe=by_kind(EVIDENCE, "kind")
    ),
    "policy-update": operation_shape(
        "policy-update", policy=anything, transitionMode_maybe=one_of("immediate", "grace-period")
    ),
    "crypto-policy-update": operation_shape("crypto-policy-update", cryptoPolicy=crypto_policy),
}

operation_payload = members(
    version=version,
    operation=by_kind(OPERATIONS, "operationType"),
    rosterHashBefore=hash_text,
    rosterHashAfter=hash_text,
)
vote_payload = members(
    {"decision?": one_of("approve", "reject"), "comment?": text(0, 500), "approvals?": list_of(approval, 1, 50)},
    version=version,
    proposalId=hash_text,
)
enact_payload = members(version=version, enactsProposalId=hash_text)
crypto_update_payload = members(version=version, registerId=text(0, 2**31), cryptoPolicy=crypto_policy)
register_payload = members(version=version, registerId=text(0, 2**31), validatorEntry=validator_entry)


def title(value, name):
    text(1, 128)(value, name)
    controls = [each for each in value if ord(each) < 32 or 127 <= ord(each) < 160]
    need(not controls, f"{name} holds control characters", SCHEMA)


def text_map(value, name):
    need(isinstance(value, dict) and len(value) <= 32, f"{name} is not an object of at most 32 members", SCHEMA)
    for each in value:
        text(1, 64)(each, f"a name in {name}")
        text(0, 512)(value[each], f"{name}.{each}")


metadata_payload = members(
    {"title?": title, "description?": text(0, 2048), "metadata?": text_map}, version=version, registerId=text(0, 2**31)
)
