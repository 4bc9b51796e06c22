import { createContextKey, type HandlerContext } from "@connectrpc/connect";

/** Who calls, for which tenant, and what the credential allows. */
export interface Principal {
  subject: string;
  tenantId: string;
  scopes: ReadonlySet<string>;
}

export const principalKey = createContextKey<Principal | undefined>(undefined, { description: "principal" });

/** The caller of this RPC. Every RPC but health has one: a missing one is a server without `authenticate`. */
export function principalOf(context: Pick<HandlerContext, "values">): Principal {
  const principal = context.values.get(principalKey);
  if (!principal) throw new Error("no principal: the server runs without the authenticate interceptor");
  return principal;
}
