import { readFile } from "node:fs/promises";
import { isNativeError } from "node:util/types";
import { Code, ConnectError } from "@connectrpc/connect";
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, type JSONWebKeySet, jwtVerify } from "jose";
import { z } from "zod";
import { type Clock, systemClock } from "./clock.ts";
import { ConfigError } from "./config.ts";
import { fetchKeys } from "./jwks-fetch.ts";
import type { SharedSettings } from "./settings.ts";

/** What a verified token says. */
export interface Claims {
  subject: string;
  /** The tenant that the token is bound to; a platform service's token has none. */
  tenantId: string | undefined;
  scopes: ReadonlySet<string>;
}

/**
 * Verifies one bearer token.
 *
 * @throws ConnectError UNAUTHENTICATED, saying what is wrong with the token and how to get a right one
 */
export type Verifier = (token: string) => Promise<Claims>;

export interface VerifierOptions {
  issuer: string;
  audience: string;
  keys: { url: string } | { jwks: JSONWebKeySet };
  /** The `typ` that the token's header must have. */
  tokenType?: string;
  clock?: Clock;
}

/** Asymmetric only: with a shared secret, whoever can verify could also mint. */
const ALGORITHMS = ["ES256", "EdDSA", "RS256"];
const CLOCK_TOLERANCE_SECONDS = 5;
const KEYS_TIMEOUT_MS = 3_000;
/** Longest token that is looked at. */
const MAX_TOKEN_LENGTH = 8_192;

const claimsSchema = z.object({
  sub: z.string().min(1),
  tenant: z.string().min(1).optional(),
  scope: z.string().default(""),
});

export function createVerifier({
  issuer,
  audience,
  keys,
  tokenType = "JWT",
  clock = systemClock,
}: VerifierOptions): Verifier {
  const keySet =
    "jwks" in keys
      ? createLocalJWKSet(keys.jwks)
      : createRemoteJWKSet(new URL(keys.url), { timeoutDuration: KEYS_TIMEOUT_MS, [customFetch]: fetchKeys });
  const expected = { algorithms: ALGORITHMS, issuer, audience, typ: tokenType, requiredClaims: ["exp", "sub"] };
  return async (token) => {
    if (token.length > MAX_TOKEN_LENGTH) throw unauthenticated("the token is too long", issuer);
    try {
      const { payload } = await jwtVerify(token, keySet, {
        ...expected,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: clock.now(),
      });
      const { sub, tenant, scope } = claimsSchema.parse(payload);
      return { subject: sub, tenantId: tenant, scopes: new Set(scope.split(" ").filter(Boolean)) };
    } catch (error) {
      throw refusalOf(error, { issuer, audience });
    }
  };
}

/**
 * The verifier that AUTH_* describes, or undefined when they are unset: then the service listens on loopback only, and
 * its main mints a local issuer instead.
 *
 * @throws ConfigError when AUTH_JWKS_FILE can't be read as a JWKS
 */
export async function verifierFromSettings(settings: AuthSettings): Promise<Verifier | undefined> {
  const { AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, AUTH_JWKS_URL: url, AUTH_JWKS_FILE: file } = settings;
  if (issuer === undefined || audience === undefined) return undefined;
  const tokenType = settings.AUTH_TOKEN_TYPE;
  if (url !== undefined) return createVerifier({ issuer, audience, tokenType, keys: { url } });
  if (file === undefined) return undefined;
  return createVerifier({ issuer, audience, tokenType, keys: { jwks: await readKeys(file) } });
}

type AuthSettings = Pick<
  SharedSettings,
  "AUTH_ISSUER" | "AUTH_AUDIENCE" | "AUTH_JWKS_URL" | "AUTH_JWKS_FILE" | "AUTH_TOKEN_TYPE"
>;

const keysSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) });

async function readKeys(file: string): Promise<JSONWebKeySet> {
  try {
    return keysSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    const unreadable = isNativeError(error) && "code" in error;
    const problem = unreadable ? "can't be read" : "holds no JSON object with a non-empty `keys` list";
    throw new ConfigError([`AUTH_JWKS_FILE="${file}" ${problem}; it wants: the issuer's public keys (JWKS)`]);
  }
}

function refusalOf(error: unknown, { issuer, audience }: { issuer: string; audience: string }): ConnectError {
  if (error instanceof errors.JWTExpired) return unauthenticated("the token has expired", issuer);
  if (error instanceof errors.JWTClaimValidationFailed) {
    const wanted: Record<string, string> = {
      aud: `the token is not for the audience "${audience}"`,
      iss: `the token is not from the issuer "${issuer}"`,
      typ: "the token has another `typ`",
    };
    return unauthenticated(wanted[error.claim] ?? `the token's claim \`${error.claim}\` is missing or wrong`, issuer);
  }
  if (error instanceof z.ZodError) return unauthenticated("the token's claims sub, tenant or scope are wrong", issuer);
  if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey) {
    return unauthenticated("the token is not signed by the issuer's key", issuer);
  }
  // jose's JWKSTimeout is a JOSEError too, but the caller's token isn't at fault when the keys can't be had.
  if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) {
    return unauthenticated("the token is not a valid signed JWT", issuer);
  }
  return new ConnectError("the issuer's keys can't be read: try again", Code.Unavailable, undefined, undefined, error);
}

function unauthenticated(problem: string, issuer: string): ConnectError {
  return new ConnectError(`${problem}: get a new one from ${issuer}`, Code.Unauthenticated);
}
