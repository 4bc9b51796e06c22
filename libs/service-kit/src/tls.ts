import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ConfigError } from "./config.ts";
import type { SharedSettings } from "./settings.ts";

/** PEM texts of a server's identity. With `ca`, clients must show a certificate of one of its authorities. */
export interface ServerTls {
  cert: string;
  key: string;
  ca?: string;
}

/**
 * Reads the files that TLS_* name; undefined when TLS is off.
 *
 * @throws ConfigError naming the variable whose file can't be read or used
 */
export async function tlsFromSettings(settings: TlsSettings): Promise<ServerTls | undefined> {
  const { TLS_CERT_FILE, TLS_KEY_FILE, TLS_CA_FILE } = settings;
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) return undefined;
  const cert = await readPem("TLS_CERT_FILE", TLS_CERT_FILE);
  const key = await readPem("TLS_KEY_FILE", TLS_KEY_FILE);
  const tls = TLS_CA_FILE === undefined ? { cert, key } : { cert, key, ca: await readPem("TLS_CA_FILE", TLS_CA_FILE) };
  try {
    createSecureContext(tls);
  } catch {
    throw new ConfigError(["TLS_CERT_FILE and TLS_KEY_FILE don't fit together, or hold no PEM"]);
  }
  return tls;
}

type TlsSettings = Pick<SharedSettings, "TLS_CERT_FILE" | "TLS_KEY_FILE" | "TLS_CA_FILE">;

async function readPem(variable: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch {
    throw new ConfigError([`${variable}="${file}" can't be read; it wants: a PEM file`]);
  }
}
