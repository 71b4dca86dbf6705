// The SDK's client for TypeScript walks a tenant: lists, calls, cancels a call of a session, reads, gets a prompt, completes, is
// asked, subscribes and is told. Prints what it saw as one JSON object. Arguments: URL, era (`legacy` or a revision). With
// EXAM_COMMAND it starts that command, a JSON list, and speaks to it on its standard streams.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.env.EXAM_PACKAGES}/package.json`));
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const [url, era] = process.argv.slice(2);
const command = process.env.EXAM_COMMAND && JSON.parse(process.env.EXAM_COMMAND);
const WATCHED = 'test://watched-resource';

const client = new Client(
  { name: 'walk', version: '1' },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: era } },
  },
);
let stop; // cancels the call instead of answering
client.setRequestHandler('elicitation/create', () => {
  if (!stop) return { action: 'accept', content: { name: 'Ada' } };
  stop.abort();
  return new Promise(() => {});
});
const told = new Promise((resolve) => {
  client.setNotificationHandler('notifications/resources/updated', (said) => resolve(said.params.uri));
});
const headers = { authorization: process.env.EXAM_AUTHORIZATION };
let resumed;
const resuming = new Promise((resolve) => (resumed = resolve));
const watching = async (where, init) => {
  const response = await fetch(where, init);
  if (new Headers(init?.headers).has('last-event-id')) resumed(response.status);
  return response;
};
const errors = [];
client.onerror = (error) => errors.push(String(error));
const transport = command
  ? new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env })
  : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch: watching });
await client.connect(transport);

const seen = { era: client.getProtocolEra() };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.called = (await client.callTool({ name: 'test_simple_text', arguments: {} })).content[0].text;
const steps = [];
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (step) => steps.push(step.progress) });
seen.progress = steps;
if (era === 'legacy') {
  stop = new AbortController();
  const asking = { name: 'test_input_required_result_elicitation', arguments: {} };
  await client.callTool(asking, { signal: stop.signal }).catch(() => {});
  stop = undefined;
  if (!command) seen.resumed = await resuming; // the stream of the cancelled call: there is nothing to come back to
}
seen.read = (await client.readResource({ uri: 'test://static-text' })).contents[0].text;
seen.prompt = (await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } })).messages[0]
  .content.text;
const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
seen.completed = (await client.complete({ ref, argument: { name: 'arg1', value: 'par' } })).completion.values;
seen.elicited = (await client.callTool({ name: 'test_input_required_result_elicitation', arguments: {} })).content[0].text;

const subscription = era === 'legacy' ? undefined : await client.listen({ resourceSubscriptions: [WATCHED] });
if (!subscription) await client.subscribeResource({ uri: WATCHED });
await fetch(process.env.EXAM_UPDATED, {
  method: 'POST',
  headers: { authorization: process.env.EXAM_OPERATOR, 'content-type': 'application/json' },
  body: JSON.stringify({ uri: WATCHED }),
});
seen.told = await told;
await subscription?.close();
seen.errors = errors;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
