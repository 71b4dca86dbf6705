// The SDK's client for TypeScript signs in with nothing but the URL: prints where its user has to go, reads the URL to which the
// user was sent back, and prints what a tool answered. Arguments: URL, era (`legacy` or a revision), redirect URI, and what the
// client knows: the URL of its metadata document, and its registration, if it has them.
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
    const { value: back } = await createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
    await transport.finishAuth(new URL(back).searchParams);
    return connect();
  }
  return client;
};
const client = await connect();
const result = await client.callTool({ name: 'list_pets', arguments: {} });
console.log(JSON.stringify({ failed: result.isError ?? false, token: kept.tokens.access_token }));
await client.close();
process.exit(0);
