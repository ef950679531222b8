// An MCP client of another code base than the server's SDK. Each line of its input is a request, each line of
// its output what came of that: node second_client.mjs SDK forms|plain URL-or-COMMAND…
import { createInterface } from "node:readline";

const [sdk, forms, ...at] = process.argv.slice(2);
const load = (name) => import(`${sdk}/dist/esm/${name}.js`);
const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }, types] = await Promise.all(
  ["client/index", "client/stdio", "client/streamableHttp", "types"].map(load),
);
const client = new Client({ name: "second", version: "1" }, { capabilities: forms === "forms" ? { elicitation: {} } : {} });
let asked = [];
if (forms === "forms")
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { choice: params.requestedSchema.properties.choice.enum[1] } };
  });
const [command, ...args] = at;
await client.connect(
  command.startsWith("http") ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args, stderr: "ignore" }),
);
for await (const line of createInterface({ input: process.stdin })) {
  const { method, ...given } = JSON.parse(line);
  const steps = [];
  asked = [];
  const how = { onprogress: ({ message }) => steps.push(message), timeout: 120_000 };
  const made = await (method === "callTool" ? client.callTool(given, undefined, how) : client[method](given)).catch((error) => ({ error: error.message }));
  console.log(JSON.stringify({ ...made, steps, asked }));
}
await client.close();
