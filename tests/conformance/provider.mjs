// A certified OpenID provider on loopback: `node provider.mjs PACKAGES PORT`. It registers clients, signs anybody in, and
// issues JWT access tokens for the resource that is asked for (RFC 8707).
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, port] = process.argv.slice(2);
const place = createRequire(`${packages}/package.json`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(place));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  scopes: ["openid", "offline_access", "tools"],
  cookies: { keys: ["of the tests"] },
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        audience: resource,
        scope: "tools",
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
