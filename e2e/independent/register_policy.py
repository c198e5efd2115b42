"""The policy of a register: its members, its defaults, and its judgement of signatures."""
from ledger_formats import Refused, need
from register_shapes import is_whole, units

MALFORMED = "VAL_POLICY_005"


def whole(least, most, default):
    def read(value, name):
        value = default if value is None else value
        need(is_whole(value) and least <= value <= most, f"{name} is not from {least} to {most}", MALFORMED)
        return value

    return read


def flag(default=None):
    def read(value, name):
        value = default if value is None else value
        need(value is None or isinstance(value, bool), f"{name} is not true or false", MALFORMED)
        return value

    return read


def text(least, most, default=None):
    def read(value, name):
        value = default if value is None else value
        fits = value is None or (isinstance(value, str) and least <= units(value) <= most)
        need(fits, f"{name} is not a text of {least} to {most}", MALFORMED)
        return value

    return read


def plain(word):
    return word.lower().replace("-", "").replace("_", "")


def word(*words):
    """Case, `-` and `_` do not matter; the spelling given here is used. The first word is the default."""

    def read(value, name):
        value = words[0] if value is None else value
        found = [each for each in words if isinstance(value, str) and plain(each) == plain(value)]
        need(found, f"{name} is none of {words}", MALFORMED)
        return found[0]

    return read


def approved_validators(value, name):
    value = [] if value is None else value
    need(isinstance(value, list) and len(value) <= 100, f"{name} is not a list of at most 100", MALFORMED)
    for each in value:
        need(isinstance(each, dict), f"{name} holds something else than objects", MALFORMED)
        for member, most, is_optional in (
            ("did", 255, False), ("publicKey", 2**31, False), ("approvedAt", 2**31, False), ("approvedBy", 2**31, True)
        ):  # fmt: skip
            found = each.get(member, "absent" if is_optional else None)
            fits = isinstance(found, str) and (is_optional or 1 <= units(found) <= most)
            need(fits, f"{name}.{member} is not a text", MALFORMED)
    return value


MAX_DOCKET_BYTES = 8 * 1024 * 1024
SECTIONS = {
    "governance": {
        "quorumFormula": word("strict-majority", "supermajority", "unanimous"),
        "proposalTtlDays": whole(1, 90, 7),
        "ownerCanBypassQuorum": flag(),
        "blueprintVersion": text(1, 100, "register-governance-v1"),
    },
    "validators": {
        "registrationMode": word("consent", "public"),
        "approvedValidators": approved_validators,
        "minValidators": whole(1, 100, 1),
        "maxValidators": whole(1, 100, 100),
        "requireStake": flag(False),
        "operationalTtlSeconds": whole(10, 600, 60),
    },
    "consensus": {
        "signatureThresholdMin": whole(1, 100, 1),
        "signatureThresholdMax": whole(1, 100, 100),
        "maxTransactionsPerDocket": whole(1, 10_000, 1000),
        "docketBuildIntervalMs": whole(10, 60_000, 1000),
        "docketTimeoutSeconds": whole(5, 300, 30),
        "maxDocketBytes": whole(1024, MAX_DOCKET_BYTES, 1_048_576),
        "maxTransactionBytes": whole(512, MAX_DOCKET_BYTES, 524_288),
        "requireBoundTxId": flag(False),
        "precisionMs": whole(1, 60_000, 500),
        "messageDelayMs": whole(1, 300_000, 15_000),
        "maxPendingPerSender": whole(1, 10_000, 256),
    },
    "leaderElection": {
        "mechanism": word("rotating", "raft", "stake-weighted"),
        "heartbeatIntervalMs": whole(100, 30_000, 1000),
        "leaderTimeoutMs": whole(101, 300_000, 3000),
    },
}


def without_nulls(value):
    """Absent members are never null in anything hashed."""
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return value


def read_members(value, shapes, name):
    """The object with its defaults; members that the shapes do not name are kept."""
    need(isinstance(value, dict), f"{name} is not an object", MALFORMED)
    found = {member: read(value.get(member), f"{name}.{member}") for member, read in shapes.items()}
    return {**value, **{member: each for member, each in found.items() if each is not None}}


def read_policy(value):
    """A complete policy: absent members get their defaults."""
    value = without_nulls(value)
    need(isinstance(value, dict), "policy is not an object", MALFORMED)
    sections = {name: read_members(value.get(name, {}), shapes, name) for name, shapes in SECTIONS.items()}
    top = {"version": whole(1, 2**53 - 1, 1), "updatedAt": text(0, 2**31), "updatedBy": text(0, 2**31)}
    policy = {**read_members(value, top, "policy"), **sections}
    validators, consensus, election = policy["validators"], policy["consensus"], policy["leaderElection"]
    least_term = election.get("termDurationSeconds", 10)
    for condition, what in (
        (validators["minValidators"] <= validators["maxValidators"], "minValidators"),
        (not validators["requireStake"] and "stakeAmount" not in validators, "stakes are not supported"),
        (consensus["signatureThresholdMin"] <= consensus["signatureThresholdMax"], "signatureThresholdMin"),
        (consensus["maxTransactionBytes"] * 2 <= consensus["maxDocketBytes"], "maxTransactionBytes"),
        (election["leaderTimeoutMs"] > election["heartbeatIntervalMs"], "leaderTimeoutMs"),
        (is_whole(least_term) and least_term >= 10, "termDurationSeconds"),
        (election["mechanism"] == "rotating", "only the rotating mechanism is supported"),
    ):
        need(condition, what, MALFORMED)
    return policy


# With less than this no docket is timely, or no transaction is small enough to change the policy back.
LEAST = {"precisionMs": 50, "messageDelayMs": 1000, "maxTransactionBytes": 16_384}


def check_deadlock(policy):
    for name, least in LEAST.items():
        need(policy["consensus"][name] >= least, f"{name} below {least} would stop the register for good", MALFORMED)


def owner_may_bypass(policy, voters):
    return policy["governance"].get("ownerCanBypassQuorum", voters <= 1)


def check_algorithms(crypto_policy, algorithms):
    """Judges the algorithms of a transaction's signatures by the crypto policy in force."""
    if crypto_policy["enforcementMode"] == "Permissive":
        return
    accepted, required = crypto_policy["acceptedSignatureAlgorithms"], crypto_policy["requiredSignatureAlgorithms"]
    is_accepted = all(each in accepted for each in algorithms)
    need(is_accepted, "the crypto policy does not accept the algorithm", "VAL_POLICY_001")
    is_complete = all(each in algorithms for each in required)
    need(is_complete, "the crypto policy requires another algorithm", "VAL_POLICY_002")


def accepts_alone(crypto_policy, algorithm):
    try:
        check_algorithms(crypto_policy, [algorithm])
    except Refused:
        return False
    return True
