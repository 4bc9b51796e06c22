import { ObservationFailed } from "../observer.ts";

/** Why a request failed, in words without the address that Node's own text holds. */
export function httpFailure(error: unknown): ObservationFailed {
  if (error instanceof ObservationFailed) return error;
  const code = codeOf(error);
  const [, text = "the connection failed"] = texts.find(([pattern]) => pattern.test(code)) ?? [];
  return new ObservationFailed(text, { cause: error });
}

const texts: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, "connection refused"],
  [/^(ENOTFOUND|EAI_AGAIN|EAI_FAIL|ENODATA)$/, "its name doesn't resolve"],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, "the connection was cut"],
  [/^ETIMEDOUT$/, "no connection in time"],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, "its network can't be reached"],
  [/^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT)/, "its certificate isn't trusted"],
  [/^(ERR_SSL|EPROTO)/, "it doesn't speak TLS"],
  [/^HPE_/, "it doesn't answer in HTTP"],
];

/** The error of several addresses has the code of the first one's. */
function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}
