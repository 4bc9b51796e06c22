import type { Interceptor } from "@connectrpc/connect";
import { authenticate } from "./auth.ts";
import { mapErrors } from "./error-codes.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import type { Verifier } from "./token-verifier.ts";
import { validateRequests } from "./validation.ts";

/** A server's interceptors in the order that matters: counted → errors mapped → authenticated → validated → handler. */
export function standardInterceptors({ logger, verifier, metrics }: StandardInterceptors): Interceptor[] {
  const counted = metrics ? [metrics.interceptor] : [];
  return [...counted, mapErrors(logger), authenticate(verifier), validateRequests()];
}

interface StandardInterceptors {
  logger: Logger;
  verifier: Verifier;
  metrics?: Metrics;
}
