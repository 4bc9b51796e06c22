import { type AddressRule, hostProblem } from "./address-rule.ts";

/** Why a URL can't be asked, as the end of a sentence that begins with it; undefined: it can, as far as it shows. */
export function urlProblem(text: string, rule: AddressRule): string | undefined {
  if (!URL.canParse(text)) return "is no URL";
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return "is neither http:// nor https://";
  if (url.username !== "" || url.password !== "") return "holds credentials, which are neither kept nor sent";
  const host = hostProblem(url, rule);
  return host && `leads to ${host}, which is never asked`;
}
