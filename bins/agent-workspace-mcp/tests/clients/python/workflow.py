"""Drives the server through one Python client, from hello to a cancelled command; any surprise is a failure.

    workflow.py mcp|fastmcp|openai-agents stdio BINARY WORKSPACE
    workflow.py mcp|fastmcp|openai-agents http URL              (the key is in MCP_API_KEY)
"""

import asyncio
import contextlib
import json
import os
import sys

FACTS = "agent-workspace/result"
EXPECTED = {
    "read_file", "write_file", "list_directory", "search_workspace", "search_content", "search_and_replace", "run_bash",
}
# Whoever holds the lock runs; it falls with the last process of the command.
HOLD = "exec 9>lock; flock 9; touch started; sleep 300"
TAKE = "flock --wait 30 lock echo free"


def command(binary: str, workspace: str) -> dict:
    kept = ("AUDIT_DIR", "PATH", "HOME")
    return {
        "command": binary,
        "args": ["serve", "--workspace", workspace, "--log-level", "error"],
        "env": {name: os.environ[name] for name in kept},
    }


def bearer() -> dict:
    return {"Authorization": f"Bearer {os.environ['MCP_API_KEY']}"}


@contextlib.asynccontextmanager
async def mcp_sdk(transport: str, *where: str):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            streams = stdio_client(StdioServerParameters(**command(*where)))
        else:
            client = await stack.enter_async_context(create_mcp_http_client(headers=bearer()))
            streams = streamable_http_client(where[0], http_client=client)
        read, write = (await stack.enter_async_context(streams))[:2]
        session = await stack.enter_async_context(ClientSession(read, write))
        await session.initialize()
        yield (await session.list_tools()).tools, session.call_tool


@contextlib.asynccontextmanager
async def fastmcp(transport: str, *where: str):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if transport == "stdio":
        way = StdioTransport(**command(*where), keep_alive=False)
    else:
        way = StreamableHttpTransport(where[0], headers=bearer())
    async with Client(way) as client:
        yield await client.list_tools(), client.call_tool_mcp


@contextlib.asynccontextmanager
async def openai_agents(transport: str, *where: str):
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from agents.mcp.util import MCPUtil

    if transport == "stdio":
        server = MCPServerStdio(command(*where), client_session_timeout_seconds=60)
    else:
        params = {"url": where[0], "headers": bearer()}
        server = MCPServerStreamableHttp(params, client_session_timeout_seconds=60)
    async with server:
        tools = await server.list_tools()
        for tool in tools:
            converted = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
            assert converted.strict_json_schema, f"{tool.name} does not convert to a strict schema"
        yield tools, server.call_tool


class Session:
    """The calls of one open session."""

    def __init__(self, tools: list, call_tool) -> None:
        names = {tool.name for tool in tools}
        assert EXPECTED <= names, names
        self.call_tool = call_tool

    async def call(self, tool: str, error: str | None = None, **arguments: object) -> str:
        result = await self.call_tool(tool, arguments)
        wire = result.model_dump(by_alias=True, mode="json")
        facts = wire["_meta"][FACTS]
        assert facts.get("error_kind") == error, wire
        assert bool(wire["isError"]) == (error is not None), wire
        assert len(wire["content"]) == 1, wire
        return wire["content"][0]["text"]

    async def works(self) -> None:
        call = self.call
        assert "[F] a.txt" in await call("list_directory")
        await call("write_file", filepath="greet.py", content="def greet():\n    return 'hi'\n")
        await call("write_file", "already_exists", filepath="greet.py", content="x = 1\n")
        assert await call("read_file", filepath="a.txt") == "hello\n"
        assert "greet.py" in await call("search_workspace", pattern="*.py")
        assert "greet.py:2:" in await call("search_content", pattern="return 'hi'")
        edit = {"old": "return 'hi'", "new": "return 'bye'"}
        text = await call("search_and_replace", filepath="greet.py", edits=[edit])
        assert "Successfully applied 1 edits" in text, text
        broken = {"old": "def greet():", "new": "def greet(:"}
        text = await call("search_and_replace", "syntax_invalid", filepath="greet.py", edits=[broken])
        assert "Python syntax error" in text, text
        await call("read_file", "outside_workspace", filepath="../outside/secret.txt")
        text = await call("run_bash", command="cat greet.py; exit 4")
        assert text == "[Exit code: 4]\ndef greet():\n    return 'bye'\n", text

    async def hold(self, watch: "Session") -> asyncio.Future:
        """A call that runs, its command holding the lock, as `watch` sees."""
        running = asyncio.ensure_future(self.call_tool("run_bash", {"command": HOLD, "timeout": 300}))
        while "started" not in await watch.call("list_directory"):
            assert not running.done(), running
            await asyncio.sleep(0.05)
        return running

    async def take(self) -> None:
        """Returns once the lock is free."""
        text = await self.call("run_bash", command=TAKE)
        assert text == "[Exit code: 0]\nfree\n", text


CLIENTS = {"mcp": mcp_sdk, "fastmcp": fastmcp, "openai-agents": openai_agents}


async def cancels(client: str, *how: str) -> int:
    """The whole workflow, a call cancelled by itself."""
    async with CLIENTS[client](*how) as (tools, call_tool):
        session = Session(tools, call_tool)
        await session.works()
        running = await session.hold(session)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await session.take()
        return len(tools)


async def leaves(client: str, *how: str) -> int:
    """The whole workflow, for a client that sends one call at a time and lets none go: it leaves while one runs."""
    async with CLIENTS[client](*how) as (tools, call_tool):
        other = Session(tools, call_tool)
        async with CLIENTS[client](*how) as (tools, call_tool):
            session = Session(tools, call_tool)
            await session.works()
            running = await session.hold(other)
        await asyncio.wait([running], timeout=30)
        assert running.done() and running.exception() is not None, running
        await other.take()
        return len(tools)


async def main(client: str, *how: str) -> None:
    way = leaves if (client, how[0]) == ("openai-agents", "http") else cancels
    print(json.dumps({"client": client, "transport": how[0], "tools": await way(client, *how)}))


asyncio.run(main(*sys.argv[1:]))
