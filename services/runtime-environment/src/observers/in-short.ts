import { storableText } from "./storable.ts";

/** How many texts are told, each in how many characters at most: 1,000 in all. */
const MAX_TOLD = 5;
const MAX_TEXT = 190;

/** Several texts as one of at most 1,000 characters: the first ones, and how many more there are. */
export function inShort(texts: readonly string[]): string {
  const told = texts.slice(0, MAX_TOLD).map((text) => storableText(text, MAX_TEXT));
  const more = texts.length - told.length;
  return more > 0 ? `${told.join("; ")}; and ${more} more` : told.join("; ");
}
