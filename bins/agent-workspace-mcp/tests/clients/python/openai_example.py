"""Runs examples/openai_agents.py with a model that is a script; any surprise is a failure.

    openai_example.py scripted stdio BINARY WORKSPACE
"""

import asyncio
import os
import pathlib
import sys

from agents import set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

sys.dont_write_bytecode = True
EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
TURNS = [
    ("write_file", {"filepath": "greet.py", "content": "def greet():\n    return 'hi'\n"}),
    # A strict schema makes a model fill in what it does not mean.
    ("search_and_replace", {
        "filepath": "greet.py",
        "edits": [{"old": "return 'hi'", "new": "return 'bye'", "replace_all": None, "expected_count": 0, "at_line": None}],
        "dry_run": None, "validate": None, "min_similarity": None, "expected_sha256": "",
    }),
    ("read_file", {"filepath": "../outside/secret.txt"}),
    ("run_bash", {"command": "cat greet.py; exit 4"}),
]


async def main(binary: str, workspace: str) -> None:
    sys.path.insert(0, str(EXAMPLES))
    import openai_agents

    # Nothing is sent anywhere.
    set_tracing_disabled(True)
    calls = [[function_call(name, given, call_id=f"call-{at}")] for at, (name, given) in enumerate(TURNS)]
    model = ScriptedModel([*calls, [assistant_message("done")]])
    settings = ("--log-level", "error", "--audit-dir", os.environ["AUDIT_DIR"])
    said = await openai_agents.work(workspace, "greet", model, binary, settings)
    assert said == "done", said
    model.assert_complete()

    assert "search_and_replace" in model.first_call.system_instructions, model.first_call
    assert len(model.first_call.tools) == 12, model.first_call.tools
    outputs = [str(item["output"]) for item in model.last_call.input if item.get("type") == "function_call_output"]
    for output, part in zip(outputs, ("Successfully wrote", "applied 1 edits", "outside", "[Exit code: 4]"), strict=True):
        assert part in output, output


asyncio.run(main(*sys.argv[3:]))
