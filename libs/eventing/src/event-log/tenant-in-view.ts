import type { HandlerContext } from "@connectrpc/connect";
import { anyTenantScope } from "@runtime-cloud/service-kit/auth";
import { Denied } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";

/** The tenant whose events a call may see, or undefined for everyone's. Throws Denied. */
export function tenantInView(call: Pick<HandlerContext, "values">, allTenants: boolean): string | undefined {
  const { tenantId, scopes } = principalOf(call);
  if (!allTenants) return tenantId;
  if (scopes.has(anyTenantScope)) return undefined;
  throw new Denied(`allTenants needs the scope "${anyTenantScope}": leave it out, or use a platform service's token`);
}
