// The SDK's client for TypeScript walks a tenant: lists, calls, reads, gets a prompt, completes, is asked, subscribes and
// is told. Prints what it saw as one JSON object. Arguments: URL, era (`legacy` or a revision).
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.env.EXAM_PACKAGES}/package.json`));
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const [url, era] = process.argv.slice(2);
const WATCHED = 'test://watched-resource';

const client = new Client(
  { name: 'walk', version: '1' },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: era } },
  },
);
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
const told = new Promise((resolve) => {
  client.setNotificationHandler('notifications/resources/updated', (said) => resolve(said.params.uri));
});
const headers = { authorization: process.env.EXAM_AUTHORIZATION };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const seen = { era: client.getProtocolEra() };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.called = (await client.callTool({ name: 'test_simple_text', arguments: {} })).content[0].text;
const steps = [];
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (step) => steps.push(step.progress) });
seen.progress = steps;
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
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
