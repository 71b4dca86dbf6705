// A certified OpenID provider on loopback: `node provider.mjs PACKAGES PORT [CLIENTS [FORMAT]]`. It signs anybody in. Without CLIENTS
// it registers clients and issues JWT access tokens for the resource that is asked for (RFC 8707); with CLIENTS, a list as JSON, it
// has only these, as identity providers do that know nothing of MCP; with FORMAT (jwt, opaque) it does both, and is asked about its
// tokens. Groups follow from the name: `NAME@GROUP`.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, port, clients, format] = process.argv.slice(2);
const place = createRequire(`${packages}/package.json`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(place));

const issuesForResources = {
  registration: { enabled: true },
  dPoP: { enabled: true },
  resourceIndicators: {
    enabled: true,
    useGrantedResource: () => true,
    getResourceServerInfo: (_context, resource) => ({
      audience: resource,
      scope: "tools tools:write",
      accessTokenFormat: format ?? "jwt",
      accessTokenTTL: 600,
      jwt: { sign: { alg: "RS256" } },
    }),
  },
};
const asked = { introspection: { enabled: true }, revocation: { enabled: true } };
const provider = new Provider(`http://127.0.0.1:${port}`, {
  scopes: ["openid", "offline_access", "tools", "tools:write"],
  claims: { openid: ["sub", "groups"] },
  cookies: { keys: ["of the tests"] },
  clients: clients ? JSON.parse(clients) : undefined,
  features: clients && !format ? {} : { ...issuesForResources, ...(format ? asked : {}) },
  rotateRefreshToken: true,
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: id.split("@").slice(1) }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
