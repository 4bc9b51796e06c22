import { createLocalIssuer, type LocalIssuer } from "./local-issuer.ts";
import type { SharedSettings } from "./settings.ts";
import { anyTenantScope } from "./auth.ts";
import { type Verifier, verifierFromSettings } from "./token-verifier.ts";

/** How a process knows its callers, and how it is known to other services. */
export interface Identity<Settings> {
  verifier: Verifier;
  /** With SERVICE_TOKEN set, where a local run has minted one. */
  settings: Settings;
  /** Set in a local run, where no issuer is configured. */
  localIssuer?: LocalIssuer;
}

const LOCAL_SERVICE_TOKEN_SECONDS = 30 * 24 * 60 * 60;

/**
 * The issuer that AUTH_* name; else, on loopback only, one of this machine that all local processes share by
 * LOCAL_ISSUER_FILE. A service's own local token holds every scope that `scopes` lists, for any tenant.
 */
export async function identify<Settings extends SharedSettings>(
  settings: Settings,
  { subject, scopes }: { subject: string; scopes: readonly string[] },
): Promise<Identity<Settings>> {
  const verifier = await verifierFromSettings(settings);
  if (verifier) return { verifier, settings };
  const localIssuer = await createLocalIssuer({ path: settings.LOCAL_ISSUER_FILE });
  if (settings.SERVICE_TOKEN !== undefined || settings.SERVICE_TOKEN_FILE !== undefined) {
    return { verifier: localIssuer.verifier, settings, localIssuer };
  }
  const token = await localIssuer.issue({
    subject,
    scopes: [...scopes, anyTenantScope],
    expiresIn: LOCAL_SERVICE_TOKEN_SECONDS,
  });
  return { verifier: localIssuer.verifier, settings: { ...settings, SERVICE_TOKEN: token }, localIssuer };
}
