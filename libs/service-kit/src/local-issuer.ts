import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isNativeError } from "node:util/types";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, SignJWT } from "jose";
import { z } from "zod";
import { type Clock, systemClock } from "./clock.ts";
import { uuidv7 } from "./ids.ts";
import { createVerifier, type Verifier } from "./token-verifier.ts";

/** An issuer for one machine: local runs and tests mint their own tokens with it. Deployments bring a real one. */
export interface LocalIssuer {
  /** For AUTH_ISSUER. */
  issuer: string;
  /** For AUTH_AUDIENCE. */
  audience: string;
  /** The public key. */
  jwks: JSONWebKeySet;
  /** Writes the public key where AUTH_JWKS_FILE may point. */
  writeJwks(file: string): Promise<void>;
  issue(token: TokenRequest): Promise<string>;
  verifier: Verifier;
}

export interface TokenRequest {
  subject: string;
  /** Left out for a platform service, whose scopes then hold `tenants:any`. */
  tenant?: string;
  scopes: readonly string[];
  /** Seconds. */
  expiresIn?: number;
}

const ALGORITHM = "ES256";
const PRIVATE_MODE = 0o600;
const DEFAULT_LIFE_SECONDS = 12 * 60 * 60;

/**
 * Makes a key pair, or takes the one that `path` holds. Several processes may ask for the same path at the same time:
 * all get the same key.
 */
export async function createLocalIssuer({
  path,
  issuer = "runtime-cloud-local",
  audience = "runtime-cloud",
  clock = systemClock,
}: {
  path?: string;
  issuer?: string;
  audience?: string;
  clock?: Clock;
} = {}): Promise<LocalIssuer> {
  const privateJwk = path === undefined ? await newPrivateKey() : await sharedPrivateKey(path);
  const key = await importJWK(privateJwk, ALGORITHM);
  const { kty, crv, x, y } = privateJwk;
  const kid = await calculateJwkThumbprint({ kty, crv, x, y });
  const jwks = { keys: [{ kty, crv, x, y, kid, alg: ALGORITHM, use: "sig" }] };

  return {
    issuer,
    audience,
    jwks,
    writeJwks: (file) => writeFile(file, JSON.stringify(jwks, null, 2)),
    verifier: createVerifier({ issuer, audience, keys: { jwks }, clock }),
    async issue({ subject, tenant, scopes, expiresIn = DEFAULT_LIFE_SECONDS }) {
      const issuedAt = Math.floor(clock.now().getTime() / 1_000);
      return new SignJWT({ scope: scopes.join(" "), ...(tenant === undefined ? {} : { tenant }) })
        .setProtectedHeader({ alg: ALGORITHM, typ: "JWT", kid })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(subject)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + expiresIn)
        .sign(key);
    },
  };
}

const privateKeySchema = z.object({
  kty: z.literal("EC"),
  crv: z.string(),
  x: z.string(),
  y: z.string(),
  d: z.string(),
});

type PrivateKey = z.output<typeof privateKeySchema>;

async function newPrivateKey(): Promise<PrivateKey> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  return privateKeySchema.parse(await exportJWK(privateKey));
}

async function sharedPrivateKey(path: string): Promise<PrivateKey> {
  await mkdir(dirname(path), { recursive: true });
  const mine = `${path}.${uuidv7()}`;
  await writeFile(mine, JSON.stringify(await newPrivateKey()), { mode: PRIVATE_MODE });
  try {
    // A link, unlike a rename, fails when the name is taken: the first process wins and nobody sees half a file.
    await link(mine, path);
  } catch (error) {
    if (!(isNativeError(error) && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await rm(mine);
  }
  return privateKeySchema.parse(JSON.parse(await readFile(path, "utf8")));
}
