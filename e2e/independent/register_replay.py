"""Folds the dockets of a register and keeps the state to compare with the interface: rules, policies, proposals."""
from ledger_formats import read_json
from register_rules import ACTIONS, check_genesis, fold_docket, is_governance

SOURCES = {"policy": "policy-update", "cryptoPolicy": "crypto-policy-update"}


class Replay:
    """The decisions of the control transactions, docket by docket."""

    def __init__(self, register):
        self.register, self.rules, self.height = register, None, 0
        self.before = []  # the rules by which each docket is judged
        self.versions = {name: [] for name in SOURCES}  # (document, txId, docketNumber), oldest first
        self.closed = {}  # proposals that are over, with their last status

    def take(self, docket, transactions):
        """`transactions`: record values and payload bytes. Returns the rules by which the docket is judged.

        They are those before it; docket 0 is sealed by the validators that it names itself.
        """
        if self.rules is None:
            (record, payload), *_ = transactions
            self.rules = before = check_genesis(docket, record, payload, self.register)
        else:
            before, self.rules = self.rules, fold_docket(self.rules, docket, transactions)
        self.before.append(before)
        self.height += 1
        governance = [each for each in transactions if is_governance(each[0])]
        sent = [(record, read_json(payload)) for record, payload in governance]
        for name in SOURCES:
            self.note_version(name, docket, sent or transactions)
        self.note_closed(before, sent)
        return before

    def note_version(self, name, docket, sent):
        """A new version comes with the last transaction that carries one or enacts a proposal."""
        versions, now = self.versions[name], self.rules[name]
        if versions and versions[-1][0]["version"] == now["version"]:
            return
        fitting = [
            record["txId"]
            for record, _ in sent
            if not versions or ACTIONS[record["actionId"]] in (("operation", SOURCES[name]), ("enact", None))
        ]
        versions.append((now, fitting[-1], docket["docketNumber"]))

    def note_closed(self, before, sent):
        """A proposal that is no longer open was enacted, was rejected by a vote of this docket, or has expired."""
        opened = {record["txId"] for record, _ in sent if ACTIONS[record["actionId"]][0] == "propose"}
        known = opened | {each["proposalId"] for each in before["proposals"]}
        for gone in known - {each["proposalId"] for each in self.rules["proposals"]}:
            is_enacted = any(payload.get("enactsProposalId") == gone for _, payload in sent)
            is_rejected = any(payload.get("proposalId") == gone for _, payload in sent)
            self.closed[gone] = "Recorded" if is_enacted else "Rejected" if is_rejected else "Expired"
