// Lets a suite that knows no credentials talk to a gateway that wants one: every request to EXAM_ORIGIN gets
// EXAM_AUTHORIZATION unless it has an Authorization of its own. Its time limits are four times as long, so that a busy
// machine changes no outcome. Loaded with `node --import`; the suite stays as it is.
import http from 'node:http';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';

const origin = new URL(process.env.EXAM_ORIGIN);
const authorization = process.env.EXAM_AUTHORIZATION;
const isName = (name) => String(name).toLowerCase() === 'authorization';

// Headers as undici and node:http take them: nothing, a flat list of names and values, pairs, or an object.
function authorized(headers) {
  if (!headers) return { authorization };
  if (Array.isArray(headers)) {
    return headers.some((name, at) => at % 2 === 0 && isName(name)) ? headers : [...headers, 'authorization', authorization];
  }
  const pairs = typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers);
  if (pairs.some(([name]) => isName(name))) return headers;
  return typeof headers[Symbol.iterator] === 'function'
    ? [...pairs, ['authorization', authorization]].flat()
    : { ...headers, authorization };
}

// 1. the package undici, which the suite brings along
const undici = createRequire(pathToFileURL(`${process.env.EXAM_PACKAGES}/package.json`))('undici');
const authorize = (dispatch) => (options, handler) => {
  const isOurs = new URL(String(options.origin)).origin === origin.origin;
  return dispatch(isOurs ? { ...options, headers: authorized(options.headers) } : options, handler);
};
undici.setGlobalDispatcher(new undici.Agent().compose(authorize));

// 2. the global fetch
const plainFetch = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
  const request = input instanceof Request ? input : undefined;
  if (new URL(request ? request.url : String(input)).origin !== origin.origin) return plainFetch(input, init);
  const headers = new Headers(init.headers ?? request?.headers);
  if (!headers.has('authorization')) headers.set('authorization', authorization);
  return plainFetch(input, { ...init, headers });
};

// 3. node:http, with which headers are sent that fetch would not send
const plainRequest = http.request;
http.request = function request(...given) {
  const url = typeof given[0] === 'string' || given[0] instanceof URL ? new URL(String(given[0])) : undefined;
  const at = url ? 1 : 0;
  if (url && (typeof given[1] !== 'object' || given[1] === null)) given.splice(1, 0, {});
  const options = given[at];
  const { hostname, port } = url ?? { hostname: options.hostname ?? options.host, port: options.port };
  if (hostname === origin.hostname && String(port) === origin.port) {
    given[at] = { ...options, headers: authorized(options.headers) };
  }
  return plainRequest.apply(http, given);
};
syncBuiltinESMExports();

// 4. time limits: timers of a second and more; shorter ones are pauses of the suite
const plainTimeout = globalThis.setTimeout;
globalThis.setTimeout = (callback, ms, ...given) => plainTimeout(callback, ms >= 1000 ? 4 * ms : ms, ...given);
