import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { z } from "zod";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;
const base64 = z.base64();

export interface EncryptionKey {
  readonly id: string;
  readonly key: Buffer;
}

/**
 * Encrypts what must not lie about in clear. `purpose` and `context` say what the secret is and whose; they are
 * authenticated, so a sealed value moved to another row or column does not open.
 *
 * Layout: one byte length of the key id, key id, nonce, tag, ciphertext.
 */
export interface SecretBox {
  seal(plain: Uint8Array, purpose: string, context: string): Buffer;
  /** Throws SealedValueRefused. */
  open(sealed: Uint8Array, purpose: string, context: string): Buffer;
}

/** It was sealed under a key that is gone, for something else, or was tampered with. */
export class SealedValueRefused extends Error {
  override readonly name = "SealedValueRefused";
}

/** The first key seals, every key opens: put a new key in front to rotate. */
export function secretBox(keys: readonly [EncryptionKey, ...EncryptionKey[]]): SecretBox {
  const [sealing] = keys;
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  return {
    seal(plain, purpose, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, sealing.key, nonce).setAAD(associatedData(purpose, context));
      const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([
        Buffer.of(sealing.id.length),
        Buffer.from(sealing.id),
        nonce,
        cipher.getAuthTag(),
        ciphertext,
      ]);
    },
    open(sealed, purpose, context) {
      const { keyId, nonce, tag, ciphertext } = takeApart(Buffer.from(sealed));
      const key = byId.get(keyId);
      if (!key) throw new SealedValueRefused(`sealed under key ${JSON.stringify(keyId)}, which is not configured`);
      try {
        const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(associatedData(purpose, context)).setAuthTag(tag);
        return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
      } catch {
        throw new SealedValueRefused(`not a ${purpose} of ${context}, or tampered with`);
      }
    },
  };
}

/**
 * Reads `id:base64[,id2:base64…]`, each key 32 bytes. Throws an Error that says what is wrong without repeating a key;
 * whoever reads the setting names it.
 */
export function parseEncryptionKeys(text: string): [EncryptionKey, ...EncryptionKey[]] {
  const [first, ...others] = text.split(",").map((part) => parseKey(part.trim()));
  if (!first) throw new Error("holds no key");
  const ids = [first, ...others].map(({ id }) => id);
  const repeated = ids.find((id, index) => ids.indexOf(id) !== index);
  if (repeated !== undefined) throw new Error(`has two keys with the id ${repeated}`);
  return [first, ...others];
}

function parseKey(text: string): EncryptionKey {
  const [id = "", encoded = "", ...rest] = text.split(":");
  if (!KEY_ID.test(id) || rest.length > 0) {
    throw new Error("must be id:base64[,id:base64…], an id having 1 to 32 letters, digits, _ or -");
  }
  const key = Buffer.from(encoded, "base64");
  if (!base64.safeParse(encoded).success || key.length !== KEY_BYTES) {
    throw new Error(`key ${id} must be ${KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${KEY_BYTES}\` prints`);
  }
  return { id, key };
}

function takeApart(sealed: Buffer) {
  const idEnd = 1 + (sealed[0] ?? 0);
  const nonceEnd = idEnd + NONCE_BYTES;
  const tagEnd = nonceEnd + TAG_BYTES;
  if (sealed.length < tagEnd) throw new SealedValueRefused("too short to be a sealed value");
  return {
    keyId: sealed.toString("utf8", 1, idEnd),
    nonce: sealed.subarray(idEnd, nonceEnd),
    tag: sealed.subarray(nonceEnd, tagEnd),
    ciphertext: sealed.subarray(tagEnd),
  };
}

function associatedData(purpose: string, context: string): Buffer {
  return Buffer.from(JSON.stringify([purpose, context]));
}
