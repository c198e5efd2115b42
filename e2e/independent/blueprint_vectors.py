#!/usr/bin/env python3
"""Makes the vectors of blueprints' hashes; with --check compares them with the file that the product's tests read."""
import copy
import json
import pathlib
import sys

from blueprint_formats import hashes, is_publication, publication, publication_tx_id, published_form
from ledger_formats import jcs, jcs_text

FOLDER = pathlib.Path(__file__).parents[2] / "components/core/blueprint/vectors"
FILE = FOLDER / "blueprint.json"
REGISTER = "0123456789abcdef0123456789abcdef"
OTHER_REGISTER = "f" * 32
PUBLISHER = "did:platform:w:w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek"

# Changes of the example, and which of the three hashes each must not change.
ALL = ("publicationTxId", "execDefHash", "structuralHash")
WORDS, LOOKS, NOTHING = ("execDefHash", "structuralHash"), ("execDefHash",), ()


def first_schema(definition):
    return definition["actions"][0]["dataSchemas"][0]


VARIANTS = [
    ("as it is", ALL, lambda d: None),
    ("another title", WORDS, lambda d: d.update(title="Temporary site permit (2026)")),
    ("another description", WORDS, lambda d: d.update(description="Zwölf € \U0001f511 \u2028 \"\\\u0001")),
    ("a presentation keyword", LOOKS, lambda d: first_schema(d)["properties"]["floorAreaM2"].update({"x-width": "half"})),
    ("one more required field", NOTHING, lambda d: first_schema(d)["required"].append("plans")),
    ("what services keep", ALL, lambda d: d.update(updatedAt="2026-11-22T00:00:00Z", versionMajor=3) or d["metadata"].update({"x-source-register": REGISTER})),
    ("lineage alone as metadata", WORDS, lambda d: d.update(metadata={"x-source-version": "2"})),
    ("no metadata", WORDS, lambda d: d.pop("metadata")),
    ("a title in a schema", WORDS, lambda d: first_schema(d)["properties"]["contact"].update(title="Contact", description="How to reach you", examples=[{}], **{"$comment": "x"})),
    ("a property that is named title", NOTHING, lambda d: first_schema(d)["properties"].update(title={"type": "string"})),
    ("a title deep in a schema", WORDS, lambda d: first_schema(d)["properties"]["contact"]["properties"]["email"].update(title="E-mail")),
    ("schemas in every place", NOTHING, lambda d: first_schema(d).update({
        "allOf": [{"title": "a", "not": {"title": "b", "required": ["q"]}}, True],
        "$defs": {"title": {"title": "c", "type": "object"}},
        "patternProperties": {"^x": {"description": "d", "x-pages": 1}},
        "dependentSchemas": {"plans": {"$comment": "e", "items": {"x-review": True, "x-file": {}}}},
        "enum": [{"title": "kept"}],
        "default": {"title": "kept"},
        "unevaluatedProperties": {"title": "gone"},
    })),
    ("shared schemas", NOTHING, lambda d: d.update(dataSchemas=[{"$id": "urn:x", "title": "gone", "properties": {"a": {"x-persona": "b"}}}])),
    ("a null member", ("execDefHash",), lambda d: d["actions"][0].update(condition=None)),
    ("an extension", LOOKS, lambda d: d.update({"x-team": {"a": [1, 2.5, -0.0, 1e21]}})),
    ("words of a participant", WORDS, lambda d: d["participants"][1].update(name="Office", organisation="City", instructions="Read.")),
    ("a wallet of a participant", NOTHING, lambda d: d["participants"][1].pop("walletAddress")),
    ("a DID of a participant", LOOKS, lambda d: d["participants"][1].update(didUri="did:example:1")),
    ("words of an action", WORDS, lambda d: d["actions"][1].update(title="Look", description="At it", instructions="Well")),
    ("a form", LOOKS, lambda d: d["actions"][1].update(form={"type": "Layout", "title": "Form"})),
    ("words of a route", WORDS, lambda d: d["actions"][0]["routes"][0].update(description="First the board")),
    ("an extension of a route", LOOKS, lambda d: d["actions"][0]["routes"][0].update({"x-colour": "red"})),
    ("another order of actions", NOTHING, lambda d: d["actions"].reverse()),
    ("another order of members", ALL, lambda d: [d.update({name: d.pop(name)}) for name in sorted(d)] and None),
    ("an action without schemas and routes", NOTHING, lambda d: [d["actions"][3].pop(name) for name in ("dataSchemas", "routes")] and None),
    ("a member named __proto__", NOTHING, lambda d: first_schema(d)["properties"].update(__proto__={"type": "string", "title": "gone"})),
]


def of(definition):
    return {"publicationTxId": publication_tx_id(REGISTER, definition["id"], definition), **hashes(definition)}


def case(base, name, same, change):
    definition = copy.deepcopy(base)
    change(definition)
    made, before = of(definition), of(base)
    for each in ALL:
        assert (made[each] == before[each]) == (each in same), f"{name}: {each}"
    return {"name": name, "same": list(same), "definition": jcs_text(definition), "published": jcs_text(published_form(definition)), **made}


def transaction(base):
    made = publication(REGISTER, base, PUBLISHER)
    record = {"registerId": REGISTER, "type": "Control", "blueprintId": base["id"], "actionId": "blueprint-publish"}
    record.update(txId=made["txId"], metadata=made["metadata"])
    payload = jcs(made["payload"])
    assert is_publication(record, payload)
    wrong = [
        {**record, "registerId": OTHER_REGISTER},
        {**record, "type": "Action"},
        {**record, "actionId": "publish"},
        {**record, "blueprintId": "another"},
        {**record, "txId": "0" * 64},
        {**record, "metadata": {**record["metadata"], "publishedBy": "did:platform:w:another"}},
        {**record, "metadata": {**record["metadata"], "note": "more"}},
        {**record, "metadata": {"Type": "Control"}},
    ]
    payloads = [
        {**made["payload"], "publishedBy": "did:platform:w:another"},
        {**made["payload"], "more": 1},
        {**made["payload"], "version": 2},
        {**made["payload"], "definition": {**made["payload"]["definition"], "version": 1}},
        {**made["payload"], "definition": []},
        [],
    ]
    wrong_payloads = [jcs_text(each) for each in payloads] + ["{", '{"definition":1,"definition":2}']
    assert not any(is_publication(each, payload) for each in wrong)
    assert not any(is_publication(record, each.encode()) for each in wrong_payloads)
    return {"record": record, "payload": payload.decode(), "wrong": wrong, "wrongPayloads": wrong_payloads}


def vectors():
    base = json.loads((FOLDER / "site-permit.json").read_text(encoding="utf-8"))
    cases = [case(base, *variant) for variant in VARIANTS]
    return {"registerId": REGISTER, "publishedBy": PUBLISHER, "cases": cases, "publication": transaction(base)}


def main():
    made = json.dumps(vectors(), indent=2, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(made, encoding="utf-8")
        return
    is_same = json.loads(FILE.read_text(encoding="utf-8")) == json.loads(made)
    print("ok  blueprint vectors" if is_same else "NOT blueprint vectors")
    print(f"{int(is_same)} passed, {int(not is_same)} failed")
    sys.exit(0 if is_same else 1)


main()
