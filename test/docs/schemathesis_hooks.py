"""Gives the calls of schemathesis keys and ids that the server knows: spread over accounts, so that flood protection does
not answer most of them, and half of those about a stored response or a conversation with the id of one that is there."""
import itertools
import os

import schemathesis

keys = itertools.cycle(os.environ["TOLLGATE_KEYS"].split(","))
turns = itertools.cycle([True, False])
owner = os.environ["TOLLGATE_KEYS"].split(",")[0]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """A stream is described as the text that it is, which schemathesis 4.32 takes for the description of each event."""
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            for reply in operation.get("responses", {}).values() if isinstance(operation, dict) else ():
                reply.get("content", {}).get("text/event-stream", {}).pop("schema", None)


@schemathesis.hook
def before_call(context, case, kwargs):
    key = next(keys)
    if "/v1/responses/{id}" in case.path and case.method != "DELETE" and next(turns):
        case.path_parameters = {**(case.path_parameters or {}), "id": os.environ["TOLLGATE_RESPONSE_ID"]}
        key = owner
    if "/v1/conversations/{id}" in case.path and case.method != "DELETE" and next(turns):
        case.path_parameters = {**(case.path_parameters or {}), "id": os.environ["TOLLGATE_CONVERSATION_ID"]}
        key = owner
    for path, name in (("/v1/batches/{id}", "BATCH"), ("/v1/messages/batches/{id}", "MESSAGE_BATCH")):
        if case.path.startswith(path) and case.method != "DELETE" and next(turns):
            case.path_parameters = {**(case.path_parameters or {}), "id": os.environ[f"TOLLGATE_{name}_ID"]}
            key = owner
    if "Authorization" not in (case.headers or {}) and "X-API-Key" not in (case.headers or {}):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {key}"}
