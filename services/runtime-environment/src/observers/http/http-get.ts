import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { addressProblem, type AddressRule, literalHost } from "./address-rule.ts";
import { httpFailure } from "./http-failure.ts";
import { urlProblem } from "./http-url.ts";
import { ObservationFailed } from "../observer.ts";
import { untilAborted } from "../within-time.ts";

export interface HttpAnswer {
  status: number;
  /** Empty unless it was asked for. */
  body: string;
}

/** How hosts are asked. Tests resolve names by themselves. */
export interface HttpAccess {
  rule: AddressRule;
  resolve: Resolve;
}

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

export const systemResolve: Resolve = (host) => lookup(host, { all: true });

const MAX_REDIRECTS = 3;
const MAX_BODY_BYTES = 65_536;
/** A component that is there takes a connection at once. */
const CONNECT_TIMEOUT_MS = 3_000;
/** Before the next address of a name is tried; Node's own 250 ms are too few for a far one. */
const ATTEMPT_TIMEOUT_MS = 1_000;

/**
 * Asks a URL that a stranger chose: each host, also that of a redirect, is resolved once, checked, and connected to at
 * an address that was checked. No proxy, no connection that is kept, no decoding. Throws ObservationFailed with a text
 * that shows no address, or the signal's reason.
 */
export async function httpGet(url: string, { withBody, signal, ...access }: Get): Promise<HttpAnswer> {
  let at = url;
  try {
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const response = await ask(at, access, signal);
      try {
        const next = redirection(response, at);
        if (next === undefined)
          return { status: response.statusCode ?? 0, body: withBody ? await bodyOf(response) : "" };
        at = next;
      } finally {
        response.destroy();
      }
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : httpFailure(error);
  }
  throw new ObservationFailed(`redirects more than ${MAX_REDIRECTS} times`);
}

async function ask(text: string, access: HttpAccess, signal: AbortSignal): Promise<http.IncomingMessage> {
  const problem = urlProblem(text, access.rule);
  if (problem !== undefined) throw new ObservationFailed(`the URL ${problem}`);
  const url = new URL(text);
  const options = {
    agent: false,
    signal,
    headers: {
      "user-agent": "runtime-cloud",
      accept: "application/json, text/plain, */*",
      "accept-encoding": "identity",
    },
    lookup: only(await checkedAddresses(literalHost(url.hostname), access, signal)),
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
  };
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve);
    const late = setTimeout(() => sent.destroy(noConnection()), CONNECT_TIMEOUT_MS);
    const connected = () => clearTimeout(late);
    sent.once("socket", (socket) => socket.once(url.protocol === "https:" ? "secureConnect" : "connect", connected));
    sent.once("close", connected).on("error", reject).end();
  });
}

async function checkedAddresses(host: string, { rule, resolve }: HttpAccess, signal: AbortSignal) {
  if (isIP(host) !== 0) return [];
  const addresses = await untilAborted(resolve(host), signal);
  const problem = addresses.flatMap(({ address }) => addressProblem(address, rule) ?? [])[0];
  if (problem !== undefined) throw new ObservationFailed(`its name leads to ${problem}, which is never asked`);
  return addresses;
}

/** Resolves whatever is asked to these addresses. It isn't called for a URL that holds its address. */
function only(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, { all }, answer) => {
    const [first] = addresses;
    if (!first) answer(new ObservationFailed("its name doesn't resolve"), "");
    else if (all) answer(null, [...addresses]);
    else answer(null, first.address, first.family);
  };
}

function redirection({ statusCode = 0, headers }: http.IncomingMessage, from: string): string | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined) return undefined;
  if (!URL.canParse(headers.location, from)) throw new ObservationFailed("redirects to what is no URL");
  return new URL(headers.location, from).href;
}

async function bodyOf(response: http.IncomingMessage): Promise<string> {
  const encoding = response.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw new ObservationFailed("answers compressed, which it wasn't asked to");
  const chunks: Buffer[] = [];
  let size = 0;
  const body: AsyncIterable<Buffer> = response;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new ObservationFailed(`answers more than ${MAX_BODY_BYTES / 1_024} KiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function noConnection(): ObservationFailed {
  return new ObservationFailed(`no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`);
}

type Get = HttpAccess & { withBody: boolean; signal: AbortSignal };
