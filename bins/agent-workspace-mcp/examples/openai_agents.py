"""An agent of the OpenAI Agents SDK that works in one directory, and nowhere else, through this server.

    pip install openai-agents
    OPENAI_API_KEY=… python openai_agents.py DIRECTORY "make the tests pass"

`agent-workspace-mcp` has to be on PATH. Any model that the SDK knows will do.
"""

import asyncio
import sys

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

SERVER = "agent-workspace-mcp"


async def work(directory: str, task: str, model=None, server: str = SERVER, settings: tuple[str, ...] = ()) -> str:
    """What the agent says when it has done `task` in `directory`."""
    command = {"command": server, "args": ["serve", "--workspace", directory, *settings]}
    # A command may take ten minutes, if the model asks for them; the SDK's own patience is five seconds.
    async with MCPServerStdio(command, client_session_timeout_seconds=660, cache_tools_list=True) as workspace:
        # The server brings its own words on how to work well with it.
        guide = await workspace.get_prompt("agent-workspace")
        agent = Agent(
            name="Engineer",
            instructions=guide.messages[0].content.text,
            mcp_servers=[workspace],
            mcp_config={"convert_schemas_to_strict": True},
            model=model,
        )
        result = await Runner.run(agent, task, max_turns=50)
        return result.final_output


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(asyncio.run(work(*sys.argv[1:])))
