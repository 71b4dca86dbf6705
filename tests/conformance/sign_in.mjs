// The SDK's client for TypeScript signs in with nothing but the URL: prints where its user has to go, reads the URL to which the
// user was sent back, and prints what a tool answered. Arguments: URL, era (`legacy` or a revision), redirect URI, and what the
// client knows: the URL of its metadata document, and its registration, if it has them. For each further line `again` it calls once
// more, in a new session where the era has sessions, and signs in with more scopes if it has to.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.env.EXAM_PACKAGES}/package.json`));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = require('@modelcontextprotocol/client');
const [url, era, redirectUrl, given] = process.argv.slice(2);
const { document, client: registered } = JSON.parse(given);

const kept = { client: registered ?? undefined };
const authProvider = {
  redirectUrl,
  clientMetadataUrl: document ?? undefined,
  clientMetadata: { client_name: 'a client', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (place) => console.log(JSON.stringify({ go: String(place) })),
};
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const finish = async (transport) => {
  const { value: back } = await lines.next();
  await transport.finishAuth(new URL(back).searchParams);
};
const connect = async () => {
  const client = new Client(
    { name: 'sign-in', version: '1' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: era } } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await finish(transport);
    return connect();
  }
  return { client, transport };
};
const call = async ({ client, transport }) => {
  const wanted = { name: 'list_pets', arguments: {} };
  try {
    return await client.callTool(wanted);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await finish(transport);
    return client.callTool(wanted);
  }
};
let connected = await connect();
do {
  const result = await call(connected);
  const { access_token: token, scope } = kept.tokens;
  if (era === 'legacy') await connected.client.close(); // its stream would sign in beside the next call
  console.log(JSON.stringify({ failed: result.isError ?? false, token, scope }));
  if ((await lines.next()).value !== 'again') break;
  if (era === 'legacy') connected = await connect();
} while (true);
if (era !== 'legacy') await connected.client.close();
process.exit(0);
