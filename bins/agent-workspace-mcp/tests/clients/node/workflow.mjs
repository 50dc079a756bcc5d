// Drives the server through one version of the TypeScript SDK, from hello to a cancelled command; any surprise is a
// failure. The packages are found from the Node that runs this, which is one of them.
//
//     workflow.mjs v1|v2 stdio BINARY WORKSPACE
//     workflow.mjs v1|v2 http URL                  (the key is in MCP_API_KEY)

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

const require = createRequire(process.execPath);
const [version, transport, ...where] = process.argv.slice(2);

const SDK = {
  v1: () => ({
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/stdio.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  }),
  v2: () => ({ ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") }),
};
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = SDK[version]();

function way() {
  if (transport === "stdio") {
    const [command, workspace] = where;
    const { AUDIT_DIR, PATH, HOME } = process.env;
    const args = ["serve", "--workspace", workspace, "--log-level", "error"];
    return new StdioClientTransport({ command, args, env: { AUDIT_DIR, PATH, HOME } });
  }
  const headers = { Authorization: `Bearer ${process.env.MCP_API_KEY}` };
  return new StreamableHTTPClientTransport(new URL(where[0]), { requestInit: { headers } });
}

const client = new Client({ name: "workflow", version: "1.0.0" }, { capabilities: {} });

async function call(name, args, error) {
  const result = await client.callTool({ name, arguments: args });
  const facts = result._meta["agent-workspace/result"];
  assert.equal(facts.error_kind ?? undefined, error, JSON.stringify(result));
  assert.equal(Boolean(result.isError), error !== undefined, JSON.stringify(result));
  assert.equal(result.content.length, 1);
  return result.content[0].text;
}

await client.connect(way());
const { tools } = await client.listTools();
const names = new Set(tools.map((tool) => tool.name));
for (const name of ["read_file", "write_file", "list_directory", "search_workspace", "search_content",
  "search_and_replace", "run_bash"]) {
  assert.ok(names.has(name), name);
}

assert.match(await call("list_directory", {}), /\[F\] a\.txt/);
await call("write_file", { filepath: "greet.py", content: "def greet():\n    return 'hi'\n" });
await call("write_file", { filepath: "greet.py", content: "x = 1\n" }, "already_exists");
assert.equal(await call("read_file", { filepath: "a.txt" }), "hello\n");
assert.match(await call("search_workspace", { pattern: "*.py" }), /greet\.py/);
assert.match(await call("search_content", { pattern: "return 'hi'" }), /greet\.py:2:/);
const edit = { old: "return 'hi'", new: "return 'bye'" };
const applied = await call("search_and_replace", { filepath: "greet.py", edits: [edit] });
assert.match(applied, /Successfully applied 1 edits/);
const broken = { old: "def greet():", new: "def greet(:" };
const refused = await call("search_and_replace", { filepath: "greet.py", edits: [broken] }, "syntax_invalid");
assert.match(refused, /Python syntax error/);
await call("read_file", { filepath: "../outside/secret.txt" }, "outside_workspace");
const ran = await call("run_bash", { command: "cat greet.py; exit 4" });
assert.equal(ran, "[Exit code: 4]\ndef greet():\n    return 'bye'\n");

// Whoever holds the lock runs; it falls with the last process of the command.
const hold = { command: "exec 9>lock; flock 9; touch started; sleep 300", timeout: 300 };
const abort = new AbortController();
const params = { name: "run_bash", arguments: hold };
const options = { signal: abort.signal, timeout: 300_000 };
const running = version === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
let ended = false;
const outcome = running.then((value) => ({ value }), (error) => ({ error })).finally(() => { ended = true; });
while (!(await call("list_directory", {})).includes("started")) {
  assert.ok(!ended, JSON.stringify(await Promise.race([outcome, pause(1)])));
  await pause(50);
}
abort.abort("no longer wanted");
assert.ok((await outcome).error, "a cancelled call was answered");
assert.equal(await call("run_bash", { command: "flock --wait 30 lock echo free" }), "[Exit code: 0]\nfree\n");

await client.close();
console.log(JSON.stringify({ client: version, transport, tools: tools.length }));
