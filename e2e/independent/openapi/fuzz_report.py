"""Reads the events of a run of schemathesis (NDJSON) and prints the faults for people."""
import base64
import json
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field

EXPECTED = {
    "not_a_server_error": "no answer of 5xx but 501 and 503",
    "status_code_conformance": "a status that the document names",
    "content_type_conformance": "a media type that the document names for the status",
    "response_schema_conformance": "a body that the schema of the status accepts",
    "documented_success": "a success that the document names by its number",
    "answer": "an answer",
    "generation": "requests that schemathesis can make from the schema",
}


@dataclass
class Fault:
    operation: str
    check: str
    message: str
    status: object = None
    request: dict = None
    answer: str = ""
    times: int = 1


@dataclass
class Report:
    requests: int = 0
    statuses: Counter = field(default_factory=Counter)
    reached: Counter = field(default_factory=Counter)
    succeeded: set = field(default_factory=set)
    faults: dict = field(default_factory=dict)
    stop_reason: str = "the run did not come to its end"

    def add(self, fault):
        """Counts a fault; only the first of its kind on its operation is kept."""
        key = (fault.operation, fault.check, fault.status, kind_of(fault))
        if key in self.faults:
            self.faults[key].times += 1
        else:
            self.faults[key] = fault


def kind_of(fault):
    """Key of a fault within its check: the first line names the violated schema."""
    return fault.message.splitlines()[0][:120] if fault.message and fault.check != "not_a_server_error" else ""


def read_events(file, operations):
    report, by_name = Report(), {operation.name: operation for operation in operations}
    for line in file:
        (kind, event), *_ = json.loads(line).items()
        if kind == "ScenarioFinished" and event.get("recorder"):
            read_scenario(report, event["recorder"], by_name)
        elif kind == "NonFatalError":
            read_error(report, event)
        elif kind == "FatalError":
            report.stop_reason = f"{event['exception']['type']}: {event['exception']['message']}"
        elif kind == "EngineFinished":
            report.stop_reason = event["stop_reason"]
    return report


def read_error(report, event):
    """A request that could not be made, or that was never answered; the latter is among the exchanges, too."""
    error = event["value"]
    is_connection = re.search("Connection|Timeout|ChunkedEncoding|IncompleteRead", error["type"])
    if is_connection and any(fault.check == "answer" and fault.operation == event["label"] for fault in report.faults.values()):
        return
    report.add(Fault(event["label"], "answer" if is_connection else "generation", f"{error['type']}: {error['message']}"))


def read_scenario(report, recorder, by_name):
    name = recorder["label"]
    for case, exchange in recorder.get("interactions", {}).items():
        report.requests += 1
        report.reached[name] += 1
        answer = exchange.get("response")
        if answer is None:
            report.add(Fault(name, "answer", "the connection ended without an answer", None, exchange["request"]))
            continue
        status = answer["status_code"]
        report.statuses[status] += 1
        if is_own_method(exchange["request"], by_name.get(name)) and 200 <= status < 400:
            report.succeeded.add(name)
            if not by_name[name].documents(status):
                documented = ", ".join(by_name[name].value["responses"])
                message = f"answered {status}, documented are {documented}"
                report.add(Fault(name, "documented_success", message, status, exchange["request"], body_text(answer)))
        for check in recorder.get("checks", {}).get(case, []):
            if check["status"] == "failure":
                failure = check["failure_info"]["failure"]
                fault = Fault(name, check["name"], failure.get("message") or failure["title"], status)
                fault.request, fault.answer = exchange["request"], body_text(answer)
                report.add(fault)


def is_own_method(request, operation):
    """Whether a request has the method of its operation: coverage tries other methods, too."""
    return operation is not None and request["method"].lower() == operation.method


def decoded(content):
    if not content:
        return b""
    return base64.b64decode(content["$base64"]) if isinstance(content, dict) else str(content).encode()


def body_text(answer):
    return decoded(answer.get("content")).decode(errors="replace")


def curl(request):
    """The call as a person repeats it; the token is that of the run's caller."""
    words = ["curl", "-i", "-X", request["method"]]
    for name, values in request["headers"].items():
        if name.lower() in ("user-agent", "accept-encoding", "accept", "connection", "content-length"):
            continue
        value = "Bearer $TOKEN" if name.lower() == "authorization" else ", ".join(values)
        words += ["-H", f"{name}: {value}"]
    text = " ".join(f'"{word}"' if "$TOKEN" in word else shlex.quote(word) for word in [*words, request["uri"]])
    body = decoded(request.get("body"))
    if not body:
        return text
    printable = body.isascii() and b"\x00" not in body
    given = f"--data-binary {shlex.quote(body.decode())}" if printable else f"--data-binary @- <<< (base64) {base64.b64encode(body).decode()}"
    return f"{text} {given}"


def print_fault(fault, log):
    print(f"NOT {fault.operation}: {fault.check} ({fault.times} times)")
    print(f"      expected  {EXPECTED.get(fault.check, fault.check)}")
    print(f"      came      {'' if fault.status is None else fault.status} {one_line(fault.answer)[:800]}")
    for line in reasons(fault.message):
        print(f"      because   {line[:240]}")
    if fault.request:
        print(f"      sent      {curl(fault.request)[:1200]}")
    for line in log_lines(log, fault):
        print(f"      log       {line[:1500]}")


def one_line(text):
    """A body as one line of a report: control characters are escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def reasons(message):
    """What a check found; the schemas that schemathesis appends are in the document."""
    lines = [line.strip() for line in re.split(r"\n\s*Schema(?: at [^\n]*)?:", message)[0].splitlines()]
    return [line for line in lines if line][:6]


def log_lines(log, fault):
    """What the services logged under the trace of a failed call."""
    try:
        trace = json.loads(fault.answer).get("traceId")
    except (ValueError, AttributeError):
        return []
    if not log or not trace:
        return []
    with open(log, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if trace in line and '"level":"info"' not in line][:5]
