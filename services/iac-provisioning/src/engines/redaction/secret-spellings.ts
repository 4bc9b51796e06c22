import { plainText } from "./plain-text.ts";

/** Lines of a multi-line secret (a private key) come in separate log lines; shorter ones (`}`, `EOF`) tell nothing. */
const MIN_SECRET_LINE_LENGTH = 8;
/** A shorter piece of base64 would be found in ordinary text. */
const MIN_ENCODED_PIECE_LENGTH = 8;

/** The ways in which a secret may stand in an engine's text: itself, line by line, quoted, encoded. */
export function spellings(secret: string): string[] {
  const lines = secret
    .split(/\r\n|\r|\n/)
    .map((line) => line.trim())
    .filter((line) => line.length >= MIN_SECRET_LINE_LENGTH);
  const texts = new Set([secret, secret.normalize("NFC"), plainText(secret, Infinity), ...lines]);
  return [...new Set([...texts, ...[...texts].flatMap(quoted), ...urlEncoded(secret), ...base64(secret)])];
}

/** As JSON (with and without the escapes of Go's encoder, which writes `<` as `\u003c`) and as an HCL string. */
function quoted(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const go = json.replace(/[<>&\u2028\u2029]/g, (character) => `\\u${hex(character)}`);
  const hcl = json.replace(/([$%])\{/g, "$1$1{");
  return [json, go, hcl];
}

function urlEncoded(text: string): string[] {
  const strict = encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd")).replace(
    /[!'()*]/g,
    (character) => `%${hex(character).slice(2).toUpperCase()}`,
  );
  const loose = strict.replace(/%(?:21|27|28|29|2A)/g, decodeURIComponent);
  return [strict, loose, strict.replaceAll("%20", "+"), loose.replaceAll("%20", "+")];
}

/**
 * Whole, and as it comes out inside a longer text (`user:secret`), which depends on where in a group of three bytes it
 * begins. In both alphabets.
 */
function base64(text: string): string[] {
  const bytes = Buffer.from(text);
  const whole = bytes.toString("base64");
  const pieces = [0, 1, 2]
    .map((offset) => {
      const first = Math.ceil((offset * 8) / 6);
      const last = Math.floor(((offset + bytes.length) * 8) / 6);
      return Buffer.concat([Buffer.alloc(offset), bytes])
        .toString("base64")
        .slice(first, last);
    })
    .filter((piece) => piece.length >= MIN_ENCODED_PIECE_LENGTH);
  const standard = [whole, whole.replace(/=+$/, ""), ...pieces];
  return [...standard, ...standard.map((piece) => piece.replaceAll("+", "-").replaceAll("/", "_"))];
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, "0");
}
