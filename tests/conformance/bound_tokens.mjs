// A certified OAuth client redeems a code, calls, refreshes and calls again, each with a DPoP proof. It reads what it needs as JSON
// from its input, and prints the types of both tokens and the statuses of both calls.
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.env.EXAM_PACKAGES}/package.json`));
const oauth = require('oauth4webapi');
const given = JSON.parse(await text(process.stdin));
const insecure = { [oauth.allowInsecureRequests]: true };
const issuer = new URL(given.issuer);
const discovered = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
const server = await oauth.processDiscoveryResponse(issuer, discovered);
const client = { client_id: given.client_id };
const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('ES256'));
const options = { DPoP, ...insecure };

const callback = new URL(`${given.redirect_uri}?${new URLSearchParams({ code: given.code, state: 's', iss: given.issuer })}`);
const sent = [server, client, oauth.None(), oauth.validateAuthResponse(server, client, callback, 's'), given.redirect_uri];
const redeemed = await oauth.authorizationCodeGrantRequest(...sent, given.verifier, options);
const first = await oauth.processAuthorizationCodeResponse(server, client, redeemed);
const call = async ({ access_token: token }) => {
  const parameters = ['POST', new URL(given.resource), new Headers(given.headers), given.body];
  return (await oauth.protectedResourceRequest(token, ...parameters, options)).status;
};
const statuses = [await call(first)];
const refreshed = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), first.refresh_token, options);
const second = await oauth.processRefreshTokenResponse(server, client, refreshed);
statuses.push(await call(second));
console.log(JSON.stringify({ types: [first.token_type, second.token_type], statuses }));
