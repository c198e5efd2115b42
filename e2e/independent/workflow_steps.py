"""Steps of workflows: which may follow which by the pinned definition, and the state that each leaves.

Everything is computed from definitions and records, never from payloads of steps. Steps judges a register from its first
docket on; judge() judges one record.
"""
import re

from blueprint_formats import is_publication
from ledger_formats import Refused, jcs_text, need, read_json, ticks, timestamp_text

BP_START, BP_SENDER, BP_STEP, BP_PIN = "VAL_BP_001", "VAL_BP_002", "VAL_BP_003", "VAL_BP_VERSION_001"
MOST = 4096
LAST_TICK = 253_402_300_800 * 10_000_000
ADDRESS = re.compile("w1[02-9ac-hj-np-z]{59}")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HASH = re.compile("[0-9a-f]{64}")
DURATION = re.compile(
    "P(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?(T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9})S)?)?"
)
NEXT = {"actionId", "branchKey"}
ROUTING = {
    *("v", "instanceId", "blueprintDefinitionTxId", "seq", "completedActionId", "routeId", "nextActions"),
    *("isRejection", "reasonCode", "current", "roles", "ended"),
}
NEEDED = ROUTING - {"routeId", "isRejection", "reasonCode", "ended"}


class Malformed(Exception):
    """A member of a definition that judging needs."""


def utf16_length(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_id(value):
    return type(value) is int and 0 <= value < 2**53


def is_text(value):
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# ---------------------------------------------------------------- definitions


def duration(text):
    """Ticks of whole weeks, days, hours, minutes and seconds; None for any other text."""
    parts = DURATION.fullmatch(text)
    if parts is None or text == "P" or parts.group(3) == "T":
        return None
    counts = [int(each or 0) for each in parts.group(1, 2, 4, 5, 6)]
    return sum(count * size for count, size in zip(counts, (604_800, 86_400, 3_600, 60, 1))) * 10_000_000


def want(condition, member):
    if not condition:
        raise Malformed(member)


def listed(value, name, most=None):
    value = [] if value.get(name) is None else value[name]
    want(isinstance(value, list) and (most is None or len(value) <= most), name)
    return value


def label(value, name):
    text = value.get(name)
    want(is_text(text) and text != "", name)
    return text


def flag(value, name):
    want(value.get(name) is None or isinstance(value[name], bool), name)
    return value.get(name) is True


def read_route(route):
    want(isinstance(route, dict), "routes")
    targets = listed(route, "nextActionIds", 8)
    want(all(is_id(each) for each in targets) and len(set(targets)) == len(targets), "nextActionIds")
    text, notice, limit = route.get("branchDeadline"), route.get("x-decision-notice"), None
    if text is not None:
        limit = duration(text) if isinstance(text, str) else None
        want(limit is not None, "branchDeadline")
    want(notice is None or isinstance(notice, dict), "x-decision-notice")
    reasons = (notice or {}).get("reasons")
    want(reasons is None or isinstance(reasons, dict), "reasons")
    limit = limit if len(targets) > 1 else None
    return label(route, "id"), {"targets": targets, "limit": limit, "reasons": set(reasons or {})}


def read_rejection(action):
    config = action.get("rejectionConfig")
    if config is None:
        return None
    want(isinstance(config, dict), "rejectionConfig")
    if flag(config, "isTerminal"):
        return "terminal"
    want(is_id(config.get("targetActionId")), "targetActionId")
    return config["targetActionId"]


def read_action(action):
    want(isinstance(action, dict) and is_id(action.get("id")), "actions")
    required = listed(action, "requiredPriorActions")
    want(all(is_id(each) for each in required), "requiredPriorActions")
    routes = [read_route(route) for route in listed(action, "routes")]
    want(len(dict(routes)) == len(routes), "routes")
    return action["id"], {
        "sender": label(action, "sender"),
        "starts": flag(action, "isStartingAction"),
        "required": set(required),
        "routes": dict(routes),
        "rejection": read_rejection(action),
    }


def read_participant(participant):
    want(isinstance(participant, dict), "participants")
    address = participant.get("walletAddress")
    want(address is None or isinstance(address, str) and ADDRESS.fullmatch(address), "walletAddress")
    return label(participant, "id"), address


class Workflow:
    """What of a definition decides the order of steps; Malformed when it cannot be read."""

    def __init__(self, definition):
        want(isinstance(definition, dict), "definition")
        self.blueprint = label(definition, "id")
        people = [read_participant(each) for each in listed(definition, "participants", 32)]
        actions = [read_action(each) for each in listed(definition, "actions", 200)]
        self.people, self.actions = dict(people), dict(actions)
        want(len(self.people) == len(people) and len(self.actions) == len(actions), "an id is there twice")
        self.edges = {}
        for number, action in actions:
            want(action["sender"] in self.people, "sender")
            self.edges[number] = {target for route in action["routes"].values() for target in route["targets"]}
            back = {action["rejection"]} - {None, "terminal"}
            want(all(each in self.actions for each in self.edges[number] | back), "a target")

    def reach(self, start, avoided):
        """Actions that routes reach from one, itself included, without passing the avoided one."""
        found, open_ = set(), [start]
        while open_:
            number = open_.pop()
            if number != avoided and number not in found:
                found.add(number)
                open_.extend(self.edges[number])
        return found

    def contains(self, segment, number):
        """Whether an action is in one branch of a fan-out: only the target of that branch reaches it."""
        source, route, index = segment
        targets = self.actions[source]["routes"][route]["targets"]
        return [at for at, target in enumerate(targets) if number in self.reach(target, source)] == [index]

    def limit(self, segment):
        return self.actions[segment[0]]["routes"][segment[1]]["limit"]


def find_workflow(definition):
    try:
        return Workflow(definition)
    except Malformed:
        return None


# ---------------------------------------------------------------- routing


def is_deadline(text):
    at = ticks(text) if isinstance(text, str) else None
    return at is not None and 0 <= at < LAST_TICK and timestamp_text(at) == text


def is_action_list(value, names):
    if not isinstance(value, list) or not all(isinstance(each, dict) and set(each) <= names for each in value):
        return False
    for each in value:
        key = each.get("branchKey", "x")
        if not is_id(each.get("actionId")) or not is_text(key) or key == "":
            return False
        if "until" in each and not is_deadline(each["until"]):
            return False
    numbers = [each["actionId"] for each in value]
    return numbers == sorted(set(numbers))


def has_shape(value):
    if not isinstance(value, dict) or not NEEDED <= set(value) <= ROUTING:
        return False
    texts = (value["instanceId"], value["blueprintDefinitionTxId"], value.get("routeId", ""), value.get("reasonCode", ""))
    return (
        value["v"] == 1
        and type(value["v"]) is int
        and all(is_text(each) for each in texts)
        and UUID.fullmatch(value["instanceId"]) is not None
        and HASH.fullmatch(value["blueprintDefinitionTxId"]) is not None
        and is_id(value["seq"])
        and is_id(value["completedActionId"])
        and is_action_list(value["nextActions"], NEXT)
        and is_action_list(value["current"], NEXT | {"until"})
        and value.get("isRejection", True) is True
        and isinstance(value["roles"], dict)
        and all(isinstance(each, str) and ADDRESS.fullmatch(each) for each in value["roles"].values())
        and value.get("ended", "Completed") in ("Completed", "Rejected")
    )


def read_routing(text):
    """The routing that a text spells; None when it is not one."""
    try:
        if utf16_length(text) > MOST:
            return None
        value = read_json(text)
        return value if has_shape(value) and jcs_text(value) == text else None
    except (Refused, ValueError, RecursionError, OverflowError):
        return None


# ---------------------------------------------------------------- branches


def write_segment(segment):
    source, route, index = segment
    return f"{source}.{route.replace('%', '%25').replace('/', '%2F')}.{index}"


def read_segment(workflow, text):
    source, _, rest = text.partition(".")
    route, _, index = rest.rpartition(".")
    route = route.replace("%2F", "/").replace("%25", "%")
    need(re.fullmatch("[0-9]{1,16}", source) and re.fullmatch("[0-9]", index), "a branch key", BP_STEP)
    segment = (int(source), route, int(index))
    known = workflow.actions.get(segment[0], {"routes": {}})["routes"].get(route)
    need(known and segment[2] < len(known["targets"]) and write_segment(segment) == text, "a branch key", BP_STEP)
    return segment


class Entry:
    """A current action, the branches that it is in from the outermost on, and its deadline in ticks."""

    def __init__(self, action, path, until):
        self.action, self.path, self.until = action, tuple(path), until

    def settled(self, workflow):
        """Without the branches that its action is no longer in."""
        path = []
        for segment in self.path:
            if not workflow.contains(segment, self.action):
                break
            path.append(segment)
        return Entry(self.action, path, self.until).limited(workflow)

    def limited(self, workflow):
        if any(workflow.limit(segment) is not None for segment in self.path):
            return self
        return Entry(self.action, self.path, None)

    def merged(self, other, workflow):
        common = []
        for one, two in zip(self.path, other.path):
            if one != two:
                break
            common.append(one)
        untils = [each.until for each in (self, other) if each.until is not None]
        return Entry(self.action, common, min(untils, default=None)).limited(workflow)

    def written(self):
        value = {"actionId": self.action}
        if self.path:
            value["branchKey"] = "/".join(write_segment(each) for each in self.path)
        if self.until is not None:
            value["until"] = timestamp_text(self.until)
        return value


def read_entry(workflow, value):
    need(value["actionId"] in workflow.actions, "a current action", BP_STEP)
    keys = value["branchKey"].split("/") if "branchKey" in value else []
    until = ticks(value["until"]) if "until" in value else None
    return Entry(value["actionId"], [read_segment(workflow, each) for each in keys], until)


def is_late(value, now):
    return "until" in value and ticks(value["until"]) < now


def waits_for(workflow, number, others):
    """Those of other actions that are, or can still reach, an action that this one requires."""
    required = workflow.actions[number]["required"] - {number}
    return [other for other in others if other != number and workflow.reach(other, number) & required]


# ---------------------------------------------------------------- steps


def starting_state(workflow, step):
    action = workflow.actions.get(step["actionId"])
    need(action is not None and action["starts"], "the action does not start the blueprint", BP_START)
    for name, address in step["boundRoles"].items():
        is_open = name in workflow.people and workflow.people[name] is None
        need(is_open and name != action["sender"] and ADDRESS.fullmatch(address), f"binds {name}", BP_STEP)
    current = [{"actionId": number} for number, each in workflow.actions.items() if each["starts"]]
    return {"seq": -1, "current": current, "roles": step["boundRoles"]}


def bind(workflow, action, roles, sender):
    person = workflow.actions[action]["sender"]
    known = workflow.people[person] or roles.get(person)
    need(known in (None, sender), "the sender is not the participant", BP_SENDER)
    return roles if workflow.people[person] else {**roles, person: sender}


def activated(workflow, own, step, created):
    """The entries that a step activates, before they meet others."""
    action = workflow.actions[own.action]
    if step["isRejection"]:
        need(action["rejection"] is not None, "the action cannot be rejected", BP_STEP)
        need(step["routeId"] is None and step["reasonCode"] is None, "a rejection with a route", BP_STEP)
        targets = [] if action["rejection"] == "terminal" else [action["rejection"]]
        return [Entry(target, own.path, own.until).settled(workflow) for target in targets]
    route = action["routes"].get(step["routeId"])
    need(route is not None or (step["routeId"] is None and not action["routes"]), "no such route", BP_STEP)
    route = route or {"targets": [], "limit": None, "reasons": set()}
    need(step["reasonCode"] is None or step["reasonCode"] in route["reasons"], "no such reason", BP_STEP)
    targets = route["targets"]
    if len(targets) < 2:
        return [Entry(target, own.path, own.until).settled(workflow) for target in targets]
    until = own.until
    if route["limit"] is not None:
        due = (created + route["limit"]) // 10 * 10
        need(0 <= due < LAST_TICK, "a deadline that cannot be written", BP_STEP)
        until = due if until is None else min(until, due)
    entries = []
    for index, target in enumerate(targets):
        inside = Entry(target, (*own.path, (own.action, step["routeId"], index)), until).settled(workflow)
        is_inside = len(inside.path) == len(own.path) + 1
        entries.append(inside if is_inside else Entry(target, own.path, own.until).settled(workflow))
    return entries


def advance(workflow, before, step):
    """The routing that a step leaves, what it took, and the late entries that it drops; Refused by code."""
    state = starting_state(workflow, step) if before is None else before
    if before is not None:
        need(before["blueprintDefinitionTxId"] == step["pin"], "the pin changes", BP_PIN)
        need(before["instanceId"] == step["instanceId"], "another instance", BP_STEP)
        need("ended" not in before, "the instance has ended", BP_STEP)
    created = ticks(step["createdAt"])
    need(created is not None, "createdAt", BP_STEP)
    live = [each for each in state["current"] if not is_late(each, created)]
    numbers = [each["actionId"] for each in live]
    need(step["actionId"] in numbers, f"action {step['actionId']} is not current", BP_STEP)
    known = [number for number in numbers if number in workflow.actions]
    need(step["actionId"] in known, "no such action", BP_STEP)
    need(not waits_for(workflow, step["actionId"], known), "the action waits for others", BP_STEP)
    entries = {each["actionId"]: read_entry(workflow, each) for each in live}
    own = entries.pop(step["actionId"])
    roles = bind(workflow, own.action, state["roles"], step["sender"])
    new = activated(workflow, own, step, created)
    is_terminal = step["isRejection"] and workflow.actions[own.action]["rejection"] == "terminal"
    if is_terminal:
        entries = {}
    for entry in new:
        met = entries.get(entry.action)
        entries[entry.action] = entry if met is None else met.merged(entry, workflow)
    current = [entries[number].written() for number in sorted(entries)]
    nexts = [each for each in current if each["actionId"] in {entry.action for entry in new}]
    routing = {
        "v": 1,
        "instanceId": step["instanceId"],
        "blueprintDefinitionTxId": step["pin"],
        "seq": state["seq"] + 1,
        "completedActionId": own.action,
        "nextActions": [{name: each[name] for name in each if name != "until"} for each in nexts],
        "current": current,
        "roles": roles,
    }
    optional = {"routeId": step["routeId"], "reasonCode": step["reasonCode"], "isRejection": step["isRejection"] or None}
    optional["ended"] = None if current else "Rejected" if is_terminal else "Completed"
    routing.update({name: value for name, value in optional.items() if value is not None})
    taken = next(each for each in live if each["actionId"] == own.action)
    return routing, taken, [each for each in state["current"] if is_late(each, created)]


def is_step(kind, routing):
    return kind in ("Action", "Rejection") and routing is not None


def previous_routing(record, routing, predecessor):
    """The routing before a step; None for a first step."""
    if record.get("previousTransactionId") == routing["blueprintDefinitionTxId"]:
        return None
    known = predecessor is not None and predecessor["txId"] == record.get("previousTransactionId")
    need(known and is_step(predecessor["type"], predecessor.get("routing")), "follows no step", BP_STEP)
    before = read_routing(predecessor["routing"])
    need(before is not None, "the step before is malformed", BP_STEP)
    return before


def check_members(record, routing, workflow):
    need((record["type"] == "Rejection") == routing.get("isRejection", False), "type", BP_STEP)
    need(record.get("blueprintId") == workflow.blueprint, "blueprintId", BP_STEP)
    need(record.get("actionId") == str(routing["completedActionId"]), "actionId", BP_STEP)
    need(record["metadata"].get("instanceId") == routing["instanceId"], "instanceId", BP_STEP)


def judge(record, workflow, is_pin_known, predecessor, now):
    """Judges one record: Refused with its code, or quiet. `predecessor`: txId, type and the text of its routing."""
    text = record.get("metadata", {}).get("routing")
    if not is_step(record["type"], text):
        behind = predecessor is not None and is_step(predecessor["type"], predecessor.get("routing"))
        need(not behind, "only a step can follow a step", BP_STEP)
        return
    routing = read_routing(text)
    need(routing is not None, "the routing is malformed", BP_STEP)
    need(workflow is not None and is_pin_known, "the pin does not resolve", BP_PIN)
    check_members(record, routing, workflow)
    before = previous_routing(record, routing, predecessor)
    starter = workflow.actions.get(routing["completedActionId"], {"sender": None})["sender"]
    is_bound_by_step = starter is not None and workflow.people[starter] is None
    roles = {name: each for name, each in routing["roles"].items() if not (is_bound_by_step and name == starter)}
    step = {
        "instanceId": routing["instanceId"],
        "pin": routing["blueprintDefinitionTxId"],
        "actionId": routing["completedActionId"],
        "routeId": routing.get("routeId"),
        "reasonCode": routing.get("reasonCode"),
        "isRejection": routing.get("isRejection", False),
        "sender": record["senderAddress"],
        "createdAt": record["createdAt"],
        "boundRoles": roles,
    }
    follows, taken, dropped = advance(workflow, before, step)
    need(jcs_text(follows) == text, "the routing does not follow from the definition", BP_STEP)
    need(not is_late(taken, now), "the action is past its deadline", BP_STEP)
    need(all(is_late(each, now) for each in dropped), "a branch still has time", BP_STEP)


class Steps:
    """Judges every step of a register, docket by docket. Memory: the publications, and the last step of each instance."""

    def __init__(self):
        self.pins, self.last, self.count = {}, {}, 0

    def take(self, docket, transactions):
        """The records of the next docket with their payloads; those of steps are not read."""
        now = ticks(docket["timestamp"])
        for record, _ in transactions:
            try:
                self.take_record(record, now)
            except Refused as refusal:
                wrong = Refused(f"docket {docket['docketNumber']}, step {record['txId']}: {refusal}")
                wrong.code = refusal.code
                raise wrong from refusal
        # A pin names a publication of an earlier docket.
        for record, payload in transactions:
            if is_publication(record, payload):
                self.pins[record["txId"]] = find_workflow(read_json(payload)["definition"])

    def take_record(self, record, now):
        predecessor = self.last.pop(record.get("previousTransactionId"), None)
        text = record["metadata"].get("routing")
        pin = (read_routing(text) or {}).get("blueprintDefinitionTxId") if text is not None else None
        judge(record, self.pins.get(pin), pin in self.pins, predecessor, now)
        if is_step(record["type"], text):
            self.last[record["txId"]] = {"txId": record["txId"], "type": record["type"], "routing": text}
            self.count += 1
