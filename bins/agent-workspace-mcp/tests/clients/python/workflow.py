"""Drives the server through the Python SDK, from hello to a refused edit; any surprise is a failure."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

FACTS = "agent-workspace/result"


async def workflow(binary: str, workspace: str) -> None:
    server = StdioServerParameters(
        command=binary,
        args=["serve", "--workspace", workspace, "--log-level", "error"],
        env={"AUDIT_DIR": os.environ["AUDIT_DIR"], "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        expected = {
            "read_file", "write_file", "list_directory", "search_workspace", "search_and_replace", "run_bash",
        }
        assert expected <= names, names

        async def call(tool: str, error: str | None = None, **arguments: object) -> str:
            result = await session.call_tool(tool, arguments)
            wire = result.model_dump(by_alias=True, mode="json")
            facts = wire["_meta"][FACTS]
            assert facts.get("error_kind") == error, wire
            assert len(wire["content"]) == 1, wire
            return wire["content"][0]["text"]

        assert "[F] a.txt" in await call("list_directory")
        assert await call("read_file", filepath="a.txt") == "hello\n"
        await call("write_file", filepath="greet.py", content="def greet():\n    return 'hi'\n")
        await call("write_file", "already_exists", filepath="greet.py", content="x = 1\n")
        assert "greet.py" in await call("search_workspace", pattern="*.py")
        edit = {"old": "return 'hi'", "new": "return 'bye'"}
        assert "Successfully applied 1 edits" in await call(
            "search_and_replace", filepath="greet.py", edits=[edit]
        )
        broken = {"old": "def greet():", "new": "def greet(:"}
        text = await call("search_and_replace", "syntax_invalid", filepath="greet.py", edits=[broken])
        assert "Python syntax error" in text, text
        await call("read_file", "outside_workspace", filepath="../outside/secret.txt")
        text = await call("run_bash", command="cat greet.py; exit 4")
        assert text == "[Exit code: 4]\ndef greet():\n    return 'bye'\n", text


asyncio.run(workflow(sys.argv[1], sys.argv[2]))
