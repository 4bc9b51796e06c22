import { readFileSync } from "node:fs";
import type { SharedSettings } from "./settings.ts";

/** The credential for calls to other services, asked anew at each call so that a rotated file is picked up. */
export function serviceToken(settings: TokenSettings): (() => string) | undefined {
  const { SERVICE_TOKEN: token, SERVICE_TOKEN_FILE: file } = settings;
  if (token !== undefined) return () => token;
  return file === undefined ? undefined : () => readFileSync(file, "utf8").trim();
}

type TokenSettings = Pick<SharedSettings, "SERVICE_TOKEN" | "SERVICE_TOKEN_FILE">;
