import Tokenizer, { TokenizerError } from "@streamparser/json/tokenizer.js";
import TokenType from "@streamparser/json/utils/types/tokenType.js";
import type { JsonValue } from "../json/canonical-json.ts";

/**
 * Which values of a document are wanted: a function takes the value that stands at its place, `*` is any other member
 * or element. What has no place is passed over and never built.
 */
export interface JsonPlaces {
  readonly [member: string]: JsonPlaces | TakeValue;
}

/** `key` is the member's name, or the element's index. */
export type TakeValue = (value: JsonValue, key: string) => void;

/** Reads one JSON document piece by piece, holding no more of it than the value that is being taken. */
export interface JsonStream {
  /** Throws NotJson, or what a place throws. */
  write(bytes: Uint8Array): void;
  /** Throws NotJson when the document is not complete. */
  end(): void;
}

/** Says nothing of the content, which may be secret. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

const STRING_BUFFER_BYTES = 64 * 1024;
const ANY = "*";

/** An object or array that is open: one to look into (`places`), or one that is wanted (`built`). */
interface Container {
  readonly isArray: boolean;
  readonly places: JsonPlaces | undefined;
  readonly built: Built | undefined;
  /** Who gets `built` once it is complete; nobody where it is part of a larger one. */
  readonly take: TakeValue | undefined;
  /** Of the member whose value comes next. */
  key: string | undefined;
  size: number;
}
type Built = JsonValue[] | Record<string, JsonValue>;

/** Integers that a number cannot hold exactly come as text, so that ids of 64 bits stay what they are. */
export function jsonStream(root: JsonPlaces): JsonStream {
  const tokenizer = new LiteralTokenizer({ stringBufferSize: STRING_BUFFER_BYTES });
  const open: Container[] = [];
  let top: Container | undefined;
  let passedOver = 0;
  let isComplete = false;

  tokenizer.onToken = ({ token, value }) => {
    switch (token) {
      case TokenType.COLON:
      case TokenType.COMMA:
        return;
      case TokenType.LEFT_BRACE:
      case TokenType.LEFT_BRACKET:
        return enter(token === TokenType.LEFT_BRACKET);
      case TokenType.RIGHT_BRACE:
      case TokenType.RIGHT_BRACKET:
        return leave(token === TokenType.RIGHT_BRACKET);
      case TokenType.STRING:
        if (top && !top.isArray && top.key === undefined && passedOver === 0) top.key = String(value);
        else scalar(value);
        return;
      case TokenType.NUMBER:
        return scalar(exactNumber(tokenizer.literal));
      default:
        return scalar(value);
    }
  };

  function enter(isArray: boolean): void {
    if (passedOver > 0) {
      passedOver += 1;
      return;
    }
    const place = top ? placeOf(top) : root;
    if (top?.built === undefined && place === undefined) {
      passedOver = 1;
      return;
    }
    const isWanted = top?.built !== undefined || typeof place === "function";
    const built: Built | undefined = isWanted ? (isArray ? [] : {}) : undefined;
    const [places, take] = typeof place === "function" ? [undefined, place] : [place, undefined];
    top = { isArray, places, built, take, key: undefined, size: 0 };
    open.push(top);
  }

  function leave(isArray: boolean): void {
    if (passedOver > 0) {
      passedOver -= 1;
      if (passedOver === 0 && top) step(top);
      return;
    }
    const closed = open.pop();
    if (closed?.isArray !== isArray || closed.key !== undefined) throw new NotJson("brackets do not match");
    top = open.at(-1);
    if (!top) isComplete = true;
    else if (closed.built === undefined) step(top);
    else finish(top, closed.built, closed.take);
  }

  function scalar(value: JsonValue): void {
    if (passedOver > 0) return;
    if (!top) throw new NotJson("a document is an object");
    const place = placeOf(top);
    if (top.built === undefined && typeof place === "object" && value !== null) {
      throw new NotJson(`${keyOf(top)} is neither an object nor an array`);
    }
    finish(top, value, typeof place === "function" ? place : undefined);
  }

  function finish(container: Container, value: JsonValue, take: TakeValue | undefined): void {
    const key = keyOf(container);
    if (container.built !== undefined) put(container.built, key, value);
    else take?.(value, key);
    step(container);
  }

  return {
    write(bytes) {
      try {
        tokenizer.write(bytes);
      } catch (error) {
        throw error instanceof TokenizerError || isBadUtf8(error) ? new NotJson("not JSON") : error;
      }
    },
    end() {
      if (!isComplete) throw new NotJson("the document is not complete");
    },
  };
}

function placeOf(container: Container): JsonPlaces | TakeValue | undefined {
  const { places } = container;
  if (places === undefined) return undefined;
  const key = keyOf(container);
  return Object.hasOwn(places, key) ? places[key] : places[ANY];
}

function keyOf({ isArray, key, size }: Container): string {
  if (isArray) return String(size);
  if (key === undefined) throw new NotJson("a value has no name");
  return key;
}

function step(container: Container): void {
  container.key = undefined;
  container.size += 1;
}

function put(built: Built, key: string, value: JsonValue): void {
  if (Array.isArray(built)) built.push(value);
  else if (key === "__proto__") Object.defineProperty(built, key, { value, enumerable: true });
  else built[key] = value;
}

function exactNumber(literal: string): number | string {
  const number = Number(literal);
  const isExact = /^-?\d+$/.test(literal) ? Number.isSafeInteger(number) : Number.isFinite(number);
  return isExact ? number : literal;
}

function isBadUtf8(error: unknown): boolean {
  return error instanceof TypeError && "code" in error && error.code === "ERR_ENCODING_INVALID_ENCODED_DATA";
}

/** Keeps a number's spelling, which the library's tokens have lost. */
class LiteralTokenizer extends Tokenizer {
  literal = "";
  protected override parseNumber(literal: string): number {
    this.literal = literal;
    return super.parseNumber(literal);
  }
}
