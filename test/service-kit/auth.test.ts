import { mkdtemp, rm, stat } from "node:fs/promises";
import http from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { Health } from "@runtime-cloud/contracts/grpc/health/v1/health_pb";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { scopeOf, tenantHeader } from "@runtime-cloud/service-kit/auth";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { createLocalIssuer, type TokenRequest } from "@runtime-cloud/service-kit/local-issuer";
import { createVerifier } from "@runtime-cloud/service-kit/token-verifier";
import { generateKeyPair, SignJWT } from "jose";
import { ProbeService } from "./probe_pb.ts";
import { collect, type Probe, probeScopes, refusalOf, startProbe } from "./probe-server.ts";

let probe: Probe;
let transport: GrpcJsTransport;

beforeAll(async () => {
  probe = await startProbe({ graceMs: 500 });
  transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}` });
});

afterAll(async () => {
  transport.close();
  await probe.server.drain();
});

const alice: TokenRequest = { subject: "alice", tenant: "acme", scopes: probeScopes };

const client = () => createClient(ProbeService, transport);

async function headersFor(token: TokenRequest, more: Record<string, string> = {}) {
  return { authorization: `Bearer ${await probe.issuer.issue(token)}`, ...more };
}

describe("a call is UNAUTHENTICATED", () => {
  test.each<[string, () => Promise<Record<string, string>> | Record<string, string>, RegExp]>([
    ["without a credential", () => ({}), /no credential: send "authorization: Bearer <token>"/],
    ["with another kind of credential", () => ({ authorization: "Basic YTpi" }), /holds no bearer token/],
    ["with something that is no JWT", () => ({ authorization: "Bearer nonsense" }), /not a valid signed JWT/],
    ["with an expired token", () => headersFor({ ...alice, expiresIn: -60 }), /has expired: get a new one from/],
    [
      "with a token for another audience",
      async () => {
        const elsewhere = await createLocalIssuer({ audience: "elsewhere" });
        return { authorization: `Bearer ${await elsewhere.issue(alice)}` };
      },
      /not signed by the issuer's key|not for the audience/,
    ],
    [
      "with a token signed by another key under the same names",
      async () => ({ authorization: `Bearer ${await (await createLocalIssuer()).issue(alice)}` }),
      /not signed by the issuer's key/,
    ],
    [
      "with a shared-secret token",
      async () => ({ authorization: `Bearer ${await hmacToken()}` }),
      /not a valid signed/,
    ],
  ])("%s", async (_name, headers, text) => {
    const refused = await refusalOf(client().ask({ question: "why" }, { headers: await headers() }));
    expect(refused.code).toBe(Code.Unauthenticated);
    expect(refused.rawMessage).toMatch(text);
  });

  test("with a token of the right key for another audience", async () => {
    const folder = await mkdtemp(join(tmpdir(), "service-kit-key-"));
    const path = join(folder, "nested", "key.json");
    const ours = await createLocalIssuer({ path });
    const theirs = await createLocalIssuer({ path, audience: "elsewhere" });
    await expect(ours.verifier(await theirs.issue(alice))).rejects.toMatchObject({
      code: Code.Unauthenticated,
      rawMessage: expect.stringContaining('not for the audience "runtime-cloud"'),
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await rm(folder, { recursive: true });
  });

  test("on a stream as well", async () => {
    const refused = await refusalOf(collect(client().watch({ messages: 1 })));
    expect(refused.code).toBe(Code.Unauthenticated);
  });
});

describe("a call is PERMISSION_DENIED", () => {
  const denied = async (call: Promise<unknown>, text: RegExp) => {
    const refused = await refusalOf(call);
    expect(refused.code).toBe(Code.PermissionDenied);
    expect(refused.rawMessage).toMatch(text);
  };

  test("without the method's scope, which is named", async () => {
    const headers = await headersFor({ ...alice, scopes: ["probe:watch"] });
    await denied(client().ask({ question: "why" }, { headers }), /Ask needs the scope "probe:ask"/);
  });

  test("without the scope of a stream", async () => {
    const headers = await headersFor({ ...alice, scopes: ["probe:ask"] });
    await denied(collect(client().watch({ messages: 1 }, { headers })), /"probe:watch"/);
  });

  test("when the method names no scope, whatever the token holds", async () => {
    const headers = await headersFor({ ...alice, scopes: [...probeScopes, "*", "tenants:any", ""] });
    await denied(client().forgotten({}, { headers }), /Forgotten names no scope in its proto/);
  });

  test("when the tenant header names another tenant than the token", async () => {
    const headers = await headersFor(alice, { [tenantHeader]: "globex" });
    await denied(client().ask({ question: "why" }, { headers }), /names another tenant than the token/);
  });

  test("when the request names another tenant than the credential, also inside a stream", async () => {
    const headers = await headersFor(alice);
    await denied(client().ask({ question: "why", tenantId: "globex" }, { headers }), /tenantId names another tenant/);
    async function* words() {
      yield { word: "mine", tenantId: "acme" };
      yield { word: "theirs", tenantId: "globex" };
    }
    await denied(client().collect(words(), { headers }), /tenantId names another tenant/);
  });

  test("when a platform service names no tenant", async () => {
    const headers = await headersFor({ subject: "iac-provisioning", scopes: [...probeScopes, "tenants:any"] });
    await denied(client().ask({ question: "why" }, { headers }), /names its tenant in the runtime-cloud-tenant header/);
  });

  test("when an ordinary token names no tenant", async () => {
    const headers = await headersFor({ subject: "nobody", scopes: probeScopes }, { [tenantHeader]: "acme" });
    await denied(client().ask({ question: "why" }, { headers }), /the token names no tenant/);
  });
});

describe("the principal", () => {
  test("has the token's subject and tenant", async () => {
    const asked = await client().ask({ question: "why", tenantId: "acme" }, { headers: await headersFor(alice) });
    expect(asked).toMatchObject({ subject: "alice", tenantId: "acme" });
  });

  test("of a platform service has the tenant that its header names", async () => {
    const service = { subject: "iac-provisioning", scopes: [...probeScopes, "tenants:any"] };
    const headers = await headersFor(service, { [tenantHeader]: "globex" });
    expect(await client().ask({ question: "why" }, { headers })).toMatchObject({ tenantId: "globex" });
  });
});

test("health needs no credential", async () => {
  expect(await createClient(Health, transport).check({})).toMatchObject({ status: 1 });
});

test.each([IaCProvisioningService, ExecutionCapacityService, RuntimeEnvironmentService])(
  "every method of $typeName names its scope",
  (service) => {
    const withoutScope = service.methods.filter((method) => scopeOf(method) === undefined);
    expect(withoutScope.map(({ name }) => name)).toEqual([]);
  },
);

describe("keys by URL", () => {
  test("verify tokens, and an issuer that is down is UNAVAILABLE, not the caller's fault", async () => {
    const keys = http.createServer((_request, response) => response.end(JSON.stringify(probe.issuer.jwks)));
    keys.listen(0, "127.0.0.1");
    await once(keys, "listening");
    const address = keys.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const { issuer, audience } = probe.issuer;
    const url = `http://127.0.0.1:${port}/jwks`;
    const token = await probe.issuer.issue(alice);
    const verifier = createVerifier({ issuer, audience, keys: { url } });
    expect(await verifier(token)).toMatchObject({ subject: "alice", tenantId: "acme" });
    keys.close();
    keys.closeAllConnections();
    await once(keys, "close");
    const fresh = createVerifier({ issuer, audience, keys: { url } });
    await expect(fresh(token)).rejects.toMatchObject({ code: Code.Unavailable });
  });

  test("are shared by processes that start on one key file at the same time", async () => {
    const folder = await mkdtemp(join(tmpdir(), "service-kit-key-"));
    const path = join(folder, "key.json");
    const issuers = await Promise.all([1, 2, 3, 4].map(() => createLocalIssuer({ path })));
    const kids = new Set(issuers.map(({ jwks }) => jwks.keys[0]?.kid));
    expect(kids.size).toBe(1);
    await rm(folder, { recursive: true });
  });
});

test("a token of the wrong type is refused though its signature is right", async () => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const { exportJWK } = await import("jose");
  const verifier = createVerifier({
    issuer: "us",
    audience: "runtime-cloud",
    keys: { jwks: { keys: [{ ...(await exportJWK(publicKey)), kty: "EC", alg: "ES256" }] } },
  });
  const idToken = new SignJWT({ tenant: "acme" }).setProtectedHeader({ alg: "ES256", typ: "id" });
  const signed = await idToken
    .setIssuer("us")
    .setAudience("runtime-cloud")
    .setSubject("a")
    .setExpirationTime("1h")
    .sign(privateKey);
  await expect(verifier(signed)).rejects.toMatchObject({ rawMessage: expect.stringContaining("another `typ`") });
});

function hmacToken(): Promise<string> {
  const token = new SignJWT({ tenant: "acme", scope: probeScopes.join(" ") }).setProtectedHeader({
    alg: "HS256",
    typ: "JWT",
  });
  const { issuer, audience } = probe.issuer;
  return token
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject("alice")
    .setExpirationTime("1h")
    .sign(new Uint8Array(32));
}
