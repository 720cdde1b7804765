#!/usr/bin/env python3
"""Holds exports against the standards, by the standards' own validators, and without a network.

    python scripts/check_exports.py target/tmp/exports ../shared/data/standards

The first folder is what the engine's tests leave behind: a folder for each case, with `ro-crate/`, `events.jsonl`, `prov.json` and
`statement.json`. The second holds the JSON Schemas of OpenLineage and the JSON-LD contexts of RO-Crate, which are not in the
repository: where it is missing, those two are skipped, loudly. That a validator would notice a mistake is checked, too: each is
given documents that are wrong.
"""

import copy
import hashlib
import json
import pathlib
import socket
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUR_FACETS = ROOT / "src/provenance/openlineage-facets.json"
PROFILE = "provenance-run-crate-0.5"
CONTEXTS = {
    "https://w3id.org/ro/crate/1.1/context": "ro-crate-contexts/ro-crate-1.1.jsonld",
    "https://w3id.org/ro/terms/workflow-run/context": "ro-crate-contexts/wfrun.jsonld",
}
# Facets whose schema is not among the files at hand: only what every facet must have is checked of them.
UNKNOWN_FACETS = {"documentation"}


def fail(message):
    sys.exit(f"exports: {message}")


def no_network():
    """Whatever would connect to something fails."""

    def refuse(*_args, **_kwargs):
        raise OSError("no network in this check")

    socket.socket.connect = refuse
    socket.create_connection = refuse


# --- RO-Crate ---------------------------------------------------------------------------------------------------------


def serve_contexts(standards):
    """Lets the validator, and rdflib beneath it, find the JSON-LD contexts in files."""
    import rdflib.plugins.shared.jsonld.context as jsonld
    import requests

    texts = {url: (standards / name).read_text() for url, name in CONTEXTS.items()}
    read = jsonld.source_to_json

    def source_to_json(source, *args, **kwargs):
        if source in texts:
            return json.loads(texts[source]), None
        return read(source, *args, **kwargs)

    def send(_adapter, request, **_kwargs):
        if request.url not in texts:
            raise requests.ConnectionError(f"no network in this check: {request.url}")
        response = requests.Response()
        response.status_code = 200
        response.url = request.url
        response.request = request
        response.headers["Content-Type"] = "application/ld+json"
        response._content = texts[request.url].encode()
        return response

    jsonld.source_to_json = source_to_json
    requests.adapters.HTTPAdapter.send = send


def crate_issues(folder):
    from rocrate_validator import services
    from rocrate_validator.models import Severity

    settings = services.ValidationSettings(
        rocrate_uri=str(folder),
        profile_identifier=PROFILE,
        requirement_severity=Severity.REQUIRED,
        no_cache=True,
    )
    result = services.validate(settings)
    return [f"{issue.check.identifier}: {issue.message}" for issue in result.get_issues()]


def crate_digests(folder):
    """Every file of a crate has the SHA-256 and the length that the metadata say."""
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    count = 0
    for entity in graph:
        types = entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]
        if "File" in types:
            data = (folder / entity["@id"]).read_bytes()
            if hashlib.sha256(data).hexdigest() != entity["sha256"] or str(len(data)) != entity["contentSize"]:
                fail(f"{folder / entity['@id']} is not what the metadata say")
            count += 1
    return count


def check_crate(folder):
    issues = crate_issues(folder)
    if issues:
        fail(f"{folder} is no {PROFILE}:\n  " + "\n  ".join(issues))
    print(f"RO-Crate: {folder.parent.name} conforms to {PROFILE}; SHA-256 of {crate_digests(folder)} files recomputed")


def crate_controls(folder):
    """The validator refuses a crate without its actions' instruments, and one whose steps have no tool."""
    metadata = json.loads((folder / "ro-crate-metadata.json").read_text())
    for kind, key in [("CreateAction", "instrument"), ("HowToStep", "workExample"), ("FormalParameter", "additionalType")]:
        wrong = copy.deepcopy(metadata)
        for entity in wrong["@graph"]:
            if entity["@type"] == kind:
                entity.pop(key)
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            (scratch / "ro-crate-metadata.json").write_text(json.dumps(wrong))
            for entity in wrong["@graph"]:
                if "File" in entity["@type"]:
                    place = scratch / entity["@id"]
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes((folder / entity["@id"]).read_bytes())
            if not crate_issues(scratch):
                fail(f"the RO-Crate validator does not mind a {kind} without {key}")


# --- OpenLineage ------------------------------------------------------------------------------------------------------


class OpenLineage:
    def __init__(self, standards):
        import jsonschema
        import referencing

        documents = {}
        for path in [*standards.glob("*.json"), OUR_FACETS]:
            if path.stat().st_size:
                document = json.loads(path.read_text())
                documents[document["$id"]] = document
        self.ids = set(documents)
        resources = [(name, referencing.Resource.from_contents(document)) for name, document in documents.items()]
        self.registry = referencing.Registry().with_resources(resources)
        self.jsonschema = jsonschema
        self.ours = json.loads(OUR_FACETS.read_text())["$id"]
        # Whether the checker of formats knows these at all, which depends on what is installed.
        self.formats = jsonschema.FormatChecker()
        for name, wrong in [("uuid", "x"), ("date-time", "x"), ("uri", "x y")]:
            if self.formats.conforms(wrong, name):
                fail(f"jsonschema does not check the format {name} here")

    def problems(self, reference, value):
        validator = self.jsonschema.Draft202012Validator(
            {"$ref": reference}, registry=self.registry, format_checker=self.formats
        )
        return [f"{'/'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(value)]

    def facets(self, value):
        """Every facet below a value, by name."""
        if isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, dict) and "_schemaURL" in inner:
                    yield key, inner
                yield from self.facets(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from self.facets(inner)

    def event_problems(self, event):
        definition = "RunEvent" if "run" in event else "JobEvent"
        found = self.problems(f"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{definition}", event)
        if not event["schemaURL"].endswith(definition):
            found.append(f"schemaURL is {event['schemaURL']}, of a {definition}")
        for name, facet in self.facets(event):
            url, _, fragment = facet["_schemaURL"].partition("#")
            if url.endswith("/openlineage-facets.json"):
                url = self.ours
            if url in self.ids:
                found += [f"{name}: {problem}" for problem in self.problems(f"{url}#{fragment}", facet)]
            elif name not in UNKNOWN_FACETS:
                found.append(f"{name}: there is no schema {url} at hand")
        return found

    def check(self, path):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for number, event in enumerate(events, 1):
            for problem in self.event_problems(event):
                fail(f"{path}, line {number}: {problem}")
        count = sum(1 for event in events for _ in self.facets(event))
        print(f"OpenLineage: {path.parent.name} has {len(events)} events and {count} facets, all valid")
        return events

    def controls(self, events):
        event = next(event for event in events if event.get("eventType") == "COMPLETE" and event["outputs"])

        def spoil(change):
            wrong = copy.deepcopy(event)
            change(wrong)
            if not self.event_problems(wrong):
                fail(f"the OpenLineage schemas do not mind {change.__doc__ or change}")

        spoil(lambda wrong: wrong["run"].pop("runId"))
        spoil(lambda wrong: wrong["run"].update(runId="no uuid"))
        spoil(lambda wrong: wrong.update(eventTime="yesterday"))
        spoil(lambda wrong: wrong.update(eventType="DONE"))
        spoil(lambda wrong: wrong["job"].pop("name"))
        spoil(lambda wrong: wrong["outputs"][0]["facets"]["version"].pop("_producer"))
        spoil(lambda wrong: wrong["outputs"][0]["facets"]["version"].pop("datasetVersion"))
        spoil(lambda wrong: wrong["outputs"][0]["facets"]["provenir_artifact"]["digests"].update(sha256="x"))


# --- PROV -------------------------------------------------------------------------------------------------------------


def read_prov(text):
    """Reads PROV-JSON; the library's warnings, of unknown prefixes and times that are none, are errors."""
    from prov.model import ProvDocument

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ProvDocument.deserialize(content=text, format="json")


def check_prov(path):
    text = path.read_text()
    document = read_prov(text)
    again = read_prov(document.serialize(format="json"))
    if document != again:
        fail(f"{path} is not the same when it was read and written")
    stated = sum(len(records) for section, records in json.loads(text).items() if section != "prefix")
    found = len(list(document.get_records()))
    if stated != found:
        fail(f"{path} states {stated} records, of which {found} were read")
    if "document" not in document.get_provn():
        fail(f"{path} cannot be written as PROV-N")
    print(f"PROV: {path.parent.name} has {found} records, read and written again")


def prov_controls(path):
    text = path.read_text()
    for wrong in [text[: len(text) // 2], text.replace('"wasGeneratedBy"', '"wasMadeBy"')]:
        try:
            read_prov(wrong)
        except Exception:
            continue
        fail("the PROV reader does not mind what is wrong")


# --- in-toto and SLSA -------------------------------------------------------------------------------------------------


def read_statement(value):
    """Reads a statement as the protocol buffers of the specification have it, which know no other fields."""
    import in_toto_attestation.predicates.provenance.v1.provenance_pb2 as provenance_pb2
    import in_toto_attestation.v1.statement_pb2 as statement_pb2
    from google.protobuf import json_format
    from in_toto_attestation.v1.statement import Statement

    message = json_format.ParseDict(value, statement_pb2.Statement())
    Statement.copy_from_pb(message).validate()
    predicate = json_format.ParseDict(value["predicate"], provenance_pb2.Provenance())
    return message, predicate


def check_statement(path):
    value = json.loads(path.read_text())
    message, predicate = read_statement(value)
    if value["predicateType"] != "https://slsa.dev/provenance/v1":
        fail(f"{path} has the predicate {value['predicateType']}")
    definition = predicate.build_definition
    if not (definition.build_type and len(definition.external_parameters) and predicate.run_details.builder.id):
        fail(f"{path} lacks what SLSA requires")
    for descriptor in [*value["subject"], *predicate_descriptors(value)]:
        lengths = {"sha256": 64, "blake3": 64, "gitCommit": 40}
        for name, digest in descriptor["digest"].items():
            if name in lengths and (len(digest) != lengths[name] or set(digest) - set("0123456789abcdef")):
                fail(f"{path}: {digest} is no {name}")
    print(f"in-toto: {path.parent.name} is a statement about {len(message.subject)} subjects with SLSA provenance")


def predicate_descriptors(value):
    yield from value["predicate"]["buildDefinition"]["resolvedDependencies"]
    yield from value["predicate"]["runDetails"]["byproducts"]


def statement_controls(path):
    def spoil(change):
        wrong = json.loads(path.read_text())
        change(wrong)
        try:
            read_statement(wrong)
        except Exception:
            return
        fail(f"the in-toto validator does not mind {change}")

    spoil(lambda wrong: wrong.pop("_type"))
    spoil(lambda wrong: wrong["subject"][0].pop("digest"))
    spoil(lambda wrong: wrong.update(subjects=[]))
    spoil(lambda wrong: wrong["predicate"]["runDetails"].update(ended="now"))
    spoil(lambda wrong: wrong["predicate"]["runDetails"]["metadata"].update(startedOn="yesterday"))


def main(exports, standards):
    exports, standards = pathlib.Path(exports), pathlib.Path(standards)
    cases = sorted(path for path in exports.iterdir() if path.is_dir()) if exports.is_dir() else []
    if not cases:
        fail(f"there are none in {exports}; the engine's tests leave them there")
    no_network()
    for case in cases:
        check_prov(case / "prov.json")
        check_statement(case / "statement.json")
    prov_controls(cases[0] / "prov.json")
    statement_controls(cases[0] / "statement.json")
    if not standards.is_dir():
        print(
            f"\n*** SKIPPED: RO-Crate and OpenLineage were NOT held against their standards: there is no folder {standards} "
            "with their contexts and schemas ***\n"
        )
        return
    openlineage = OpenLineage(standards)
    for case in cases:
        events = openlineage.check(case / "events.jsonl")
    openlineage.controls(events)
    serve_contexts(standards)
    for case in cases:
        check_crate(case / "ro-crate")
    crate_controls(cases[0] / "ro-crate")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
