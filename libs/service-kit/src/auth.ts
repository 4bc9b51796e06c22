import { type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { Health } from "@runtime-cloud/contracts/grpc/health/v1/health_pb";
import { scope as scopeOption } from "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb";
import { Denied } from "./errors.ts";
import { principalKey } from "./principal.ts";
import type { Claims, Verifier } from "./token-verifier.ts";

/** The scope of a platform service's token: it acts for the tenant that {@link tenantHeader} names. */
export const anyTenantScope = "tenants:any";

/** The request header in which a platform service names the tenant that it acts for. */
export const tenantHeader = "runtime-cloud-tenant";

/**
 * Verifies the bearer token, settles the tenant and demands the method's scope, before validation and handler, for
 * unary and streaming calls. A method without the `scope` option can't be called by anybody; health is open.
 *
 * Refuses with UNAUTHENTICATED when the credential is missing or wrong, else with PERMISSION_DENIED; both say what to
 * do about it.
 */
export function authenticate(verifier: Verifier): Interceptor {
  return (next) => async (request) => {
    if (request.service.typeName === Health.typeName) return next(request);
    const claims = await verifier(bearerToken(request.header.get("authorization")));
    demandScope(request.method, claims.scopes);
    const tenantId = tenantOf(claims, request.header.get(tenantHeader));
    request.contextValues.set(principalKey, { subject: claims.subject, tenantId, scopes: claims.scopes });
    return next(request.stream ? sameTenantStream(request, tenantId) : sameTenant(request, tenantId));
  };
}

/** The token of an `authorization: Bearer …` header. */
export function bearerToken(header: string | null | undefined): string {
  const token = /^Bearer ([^\s]+)$/i.exec(header?.trim() ?? "")?.[1];
  if (token !== undefined) return token;
  const problem = header ? "the authorization header holds no bearer token" : "no credential";
  throw new ConnectError(`${problem}: send "authorization: Bearer <token>"`, Code.Unauthenticated);
}

/** The scope that the proto demands for a method, or undefined when it names none. */
export function scopeOf(method: DescMethod): string | undefined {
  return hasOption(method, scopeOption) ? getOption(method, scopeOption) || undefined : undefined;
}

function demandScope(method: DescMethod, scopes: ReadonlySet<string>): void {
  const needed = scopeOf(method);
  if (needed === undefined) {
    throw new Denied(`${method.parent.typeName}/${method.name} names no scope in its proto, so nobody may call it`);
  }
  if (!scopes.has(needed)) {
    throw new Denied(`${method.name} needs the scope "${needed}": ask the issuer for a token with it`);
  }
}

function tenantOf({ tenantId, scopes }: Claims, header: string | null): string {
  const named = header?.trim() || undefined;
  if (scopes.has(anyTenantScope)) {
    const tenant = named ?? tenantId;
    if (tenant !== undefined) return tenant;
    throw new Denied(`a token with the scope "${anyTenantScope}" names its tenant in the ${tenantHeader} header`);
  }
  if (tenantId === undefined) throw new Denied("the token names no tenant: ask the issuer for one with `tenant`");
  if (named !== undefined && named !== tenantId) {
    throw new Denied(`the ${tenantHeader} header names another tenant than the token: leave the header out`);
  }
  return tenantId;
}

function sameTenant(request: UnaryRequest, tenantId: string): UnaryRequest {
  refuseOtherTenant(request.method, request.message, tenantId);
  return request;
}

function sameTenantStream(request: StreamRequest, tenantId: string): StreamRequest {
  if (!tenantField(request.method)) return request;
  async function* checked() {
    for await (const message of request.message) {
      refuseOtherTenant(request.method, message, tenantId);
      yield message;
    }
  }
  return { ...request, message: checked() };
}

function refuseOtherTenant(method: DescMethod, message: Message, tenantId: string): void {
  const field = tenantField(method);
  if (!field) return;
  const named = reflect(method.input, message).get(field);
  if (named !== "" && named !== tenantId) {
    throw new Denied(
      "tenantId names another tenant than the credential: leave it out, or use that tenant's credential",
    );
  }
}

/** Where a request may name its tenant. */
function tenantField({ input }: DescMethod) {
  const { tenantId } = input.field;
  return tenantId?.fieldKind === "scalar" ? tenantId : undefined;
}
