import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { httpGet, type Resolve, systemResolve } from "@runtime-cloud/runtime-environment/observers/http/http-get";
import { endless, type HttpSide, redirect, says, silence, startHttpSide } from "./http-side.ts";

let side: HttpSide;
beforeEach(async () => {
  side = await startHttpSide();
});
afterEach(() => side.close());

interface Asking {
  resolve?: Resolve;
  loopback?: "allow" | "deny";
  signal?: AbortSignal;
}

const get = (url: string, { resolve = systemResolve, loopback = "allow", signal }: Asking = {}) =>
  httpGet(url, { rule: { loopback }, resolve, withBody: true, signal: signal ?? new AbortController().signal });

const LOOPBACK = { address: "127.0.0.1", family: 4 };
const METADATA = { address: "169.254.169.254", family: 4 };

test("says who asks, and asks for no encoding", async () => {
  let headers: object = {};
  side.routes.set("/", (request, response) => {
    headers = request.headers;
    response.end("1.0");
  });
  expect(await get(side.url)).toEqual({ status: 200, body: "1.0" });
  expect(headers).toMatchObject({ "user-agent": "runtime-cloud", "accept-encoding": "identity", connection: "close" });
});

test("follows three redirects, and no fourth", async () => {
  side.routes.set("/3", redirect("/2", 301));
  side.routes.set("/2", redirect(`${side.url}/1`, 308));
  side.routes.set("/1", redirect("/0", 303));
  side.routes.set("/0", says("here"));
  side.routes.set("/4", redirect("/3"));
  expect((await get(`${side.url}/3`)).body).toBe("here");
  await expect(get(`${side.url}/4`)).rejects.toThrow("redirects more than 3 times");
});

test("leaves a loop of redirects", async () => {
  side.routes.set("/loop", redirect("/loop"));
  await expect(get(`${side.url}/loop`)).rejects.toThrow("redirects more than 3 times");
  expect(side.asked).toHaveLength(4);
});

test.each([
  ["http://169.254.169.254/latest/meta-data/", "the URL leads to a metadata service, which is never asked"],
  ["http://[::ffff:169.254.169.254]/", "the URL leads to a metadata service, which is never asked"],
  ["http://2852039166/", "the URL leads to a metadata service, which is never asked"],
  ["//0.0.0.0/", "the URL leads to an unspecified address, which is never asked"],
  ["file:///etc/passwd", "the URL is neither http:// nor https://"],
  ["http://user:password@127.0.0.1/", "the URL holds credentials, which are neither kept nor sent"],
  ["http://[", "redirects to what is no URL"],
])("refuses to be redirected to %s", async (location, text) => {
  side.routes.set("/", redirect(location));
  await expect(get(side.url)).rejects.toThrow(text);
});

test("asks nothing of this machine unless that is allowed, by address or by name", async () => {
  const text = "leads to this machine itself, which is never asked";
  await expect(get(side.url, { loopback: "deny" })).rejects.toThrow(text);
  await expect(get(`http://localhost:${side.port}`, { loopback: "deny" })).rejects.toThrow(text);
  const resolve = async () => [LOOPBACK];
  await expect(get(`http://web.test:${side.port}`, { loopback: "deny", resolve })).rejects.toThrow(text);
  expect(side.asked).toEqual([]);
});

test("connects to the address that was checked, however the name is answered after that", async () => {
  const answers = [[LOOPBACK], [METADATA]];
  const resolved: string[] = [];
  const resolve = async (host: string) => {
    resolved.push(host);
    return answers.shift() ?? [];
  };
  side.routes.set("/", says("here"));
  const url = `http://web.test:${side.port}/`;
  expect((await get(url, { resolve })).body).toBe("here");
  expect(resolved).toEqual(["web.test"]);
  await expect(get(url, { resolve })).rejects.toThrow("its name leads to a metadata service, which is never asked");
  await expect(get(url, { resolve })).rejects.toThrow("its name doesn't resolve");
  expect(side.asked).toEqual(["/"]);
});

test("refuses a name of which one address is refused", async () => {
  const resolve = async () => [LOOPBACK, METADATA];
  await expect(get(`http://web.test:${side.port}/`, { resolve })).rejects.toThrow("a metadata service");
  expect(side.asked).toEqual([]);
});

test("checks the name of a redirect as well", async () => {
  const resolve = async (host: string) => [host === "web.test" ? LOOPBACK : METADATA];
  side.routes.set("/", redirect("http://elsewhere.test/"));
  await expect(get(`http://web.test:${side.port}/`, { resolve })).rejects.toThrow("a metadata service");
});

test("stops reading an answer that is too long, and hangs up", async () => {
  let answer: ServerResponse | undefined;
  side.routes.set("/", (request, response) => {
    answer = response;
    endless(request, response);
  });
  await expect(get(side.url)).rejects.toThrow("answers more than 64 KiB");
  if (answer && !answer.closed) await once(answer, "close");
  await side.idle();
});

test("takes no answer in an encoding that it didn't ask for", async () => {
  side.routes.set("/", (_request, response) => {
    response.writeHead(200, { "content-encoding": "br" }).end("x");
  });
  await expect(get(side.url)).rejects.toThrow("answers compressed");
});

test("ends with the signal's reason while a name, an answer or its end is waited for", async () => {
  side.routes.set("/silent", silence);
  side.routes.set("/slow", (_request, response) => void response.write("1."));
  const never: Resolve = () => new Promise(() => undefined);
  for (const [url, resolve] of [
    ["http://web.test/", never],
    [`${side.url}/silent`, systemResolve],
    [`${side.url}/slow`, systemResolve],
  ] as const) {
    const stop = new AbortController();
    const asking = get(url, { resolve, signal: stop.signal });
    const timer = setTimeout(() => stop.abort(new Error("enough")), 50);
    await expect(asking).rejects.toThrow("enough");
    clearTimeout(timer);
  }
});
