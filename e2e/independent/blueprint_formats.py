"""Blueprints as they are published: the input of their three hashes, and the transaction that publishes one."""
from ledger_formats import Refused, jcs, read_json, sha256

PUBLISH_ACTION = "blueprint-publish"
SERVER = {"version", "organizationId", "createdAt", "updatedAt", "versionMajor", "versionMinor"}
WORDS = {
    "blueprint": {"title", "description", "instructions", "metadata"},
    "participant": {"name", "organisation", "instructions"},
    "action": {"title", "description", "instructions"},
    "route": {"description"},
}
BEHAVIOUR = {
    "blueprint": {"id", "presentationConfig", "instanceReference", "dataSchemas", "participants", "actions"},
    "participant": {"id", "walletAddress", "useStealthAddress"},
    "action": {
        "id", "sender", "isStartingAction", "requiredPriorActions", "calculations", "disclosures",
        "credentialRequirements", "credentialIssuanceConfig", "rejectionConfig", "participants", "requiredActionData",
        "target", "condition", "notification", "dataSchemas", "routes",
    },
    "route": {"id", "nextActionIds", "isDefault", "condition", "outputMapping", "branchDeadline", "x-decision-notice"},
}
ANNOTATIONS = {"title", "description", "examples", "$comment"}
PRESENTATION = ANNOTATIONS | {
    "x-pages", "x-sections", "x-width", "x-introduction", "x-review", "x-address-lookup", "x-persona",
}
SCHEMA_MAPS = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
SCHEMA_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
SCHEMAS = {
    "items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "contentSchema",
}


def strip(schema, dropped):
    """A schema without some keywords, at every place where a schema may be."""
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for keyword, value in schema.items():
        if keyword in dropped:
            continue
        if keyword in SCHEMAS:
            value = strip(value, dropped)
        elif keyword in SCHEMA_LISTS and isinstance(value, list):
            value = [strip(each, dropped) for each in value]
        elif keyword in SCHEMA_MAPS and isinstance(value, dict):
            value = {name: strip(each, dropped) for name, each in value.items()}
        kept[keyword] = value
    return kept


def strip_all(schemas, dropped):
    return [strip(each, dropped) for each in schemas] if isinstance(schemas, list) else schemas


def mapped(items, change):
    if not isinstance(items, list):
        return items
    return [change(each) if isinstance(each, dict) else each for each in items]


def published_form(definition):
    form = {name: value for name, value in definition.items() if name not in SERVER}
    if isinstance(form.get("metadata"), dict):
        form["metadata"] = {k: v for k, v in form["metadata"].items() if not k.startswith("x-source-")}
        if not form["metadata"]:
            del form["metadata"]
    return form


def behaviour(value, part):
    return {name: each for name, each in value.items() if name in BEHAVIOUR[part] and each is not None}


def behavioural_action(action):
    kept = behaviour(action, "action")
    routes = mapped(kept.get("routes", []), lambda route: behaviour(route, "route"))
    return {**kept, "dataSchemas": strip_all(kept.get("dataSchemas", []), PRESENTATION), "routes": routes}


def behavioural_form(definition):
    kept = behaviour(definition, "blueprint")
    kept["dataSchemas"] = strip_all(kept.get("dataSchemas", []), PRESENTATION)
    if "participants" in kept:
        kept["participants"] = mapped(kept["participants"], lambda each: behaviour(each, "participant"))
    if "actions" in kept:
        kept["actions"] = mapped(kept["actions"], behavioural_action)
    return kept


def structure(value, part):
    return {name: each for name, each in value.items() if name not in WORDS[part]}


def structural_action(action):
    kept = structure(action, "action")
    if "dataSchemas" in kept:
        kept["dataSchemas"] = strip_all(kept["dataSchemas"], ANNOTATIONS)
    if "routes" in kept:
        kept["routes"] = mapped(kept["routes"], lambda route: structure(route, "route"))
    return kept


def structural_form(definition):
    kept = structure(published_form(definition), "blueprint")
    if "dataSchemas" in kept:
        kept["dataSchemas"] = strip_all(kept["dataSchemas"], ANNOTATIONS)
    if "participants" in kept:
        kept["participants"] = mapped(kept["participants"], lambda each: structure(each, "participant"))
    if "actions" in kept:
        kept["actions"] = mapped(kept["actions"], structural_action)
    return kept


def tagged(*parts):
    return sha256(b"\x1f".join(parts)).hex()


def publication_tx_id(register, blueprint, definition):
    facts = (register.encode(), blueprint.encode(), jcs(published_form(definition)))
    return tagged(b"platform:blueprint-publication:v1", *facts)


def hashes(definition):
    return {
        "contentHash": sha256(jcs(published_form(definition))).hex(),
        "execDefHash": tagged(b"platform:exec-def:v1", jcs(behavioural_form(definition))),
        "structuralHash": tagged(b"platform:blueprint-structure:v1", jcs(structural_form(definition))),
    }


def publication(register, definition, published_by):
    """Id, payload and metadata of the transaction that publishes a definition."""
    metadata = {"Type": "Control", "transactionType": "BlueprintPublish", "publishedBy": published_by}
    return {
        "txId": publication_tx_id(register, definition["id"], definition),
        "payload": {"version": 1, "definition": published_form(definition), "publishedBy": published_by},
        "metadata": {**metadata, **hashes(definition)},
    }


def is_publication(record, payload):
    """Whether a sealed record publishes a blueprint: its id, payload and metadata follow from one another."""
    if record["type"] != "Control" or record.get("actionId") != PUBLISH_ACTION:
        return False
    try:
        said = read_json(payload)
        definition, publisher = said["definition"], said["publishedBy"]
        if not isinstance(definition["id"], str) or not isinstance(publisher, str):
            return False
        if definition["id"] != record.get("blueprintId"):
            return False
        made = publication(record["registerId"], definition, publisher)
        follows = made["txId"] == record["txId"] and made["metadata"] == record["metadata"]
        return follows and jcs(made["payload"]) == jcs(said)
    except (Refused, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
