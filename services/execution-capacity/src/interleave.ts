/** The same items, of each key one in turn, in the order in which they came. */
export function interleave<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[] {
  const byKey = new Map<string, Item[]>();
  for (const item of items) {
    const others = byKey.get(keyOf(item));
    if (others) others.push(item);
    else byKey.set(keyOf(item), [item]);
  }
  const lines = [...byKey.values()];
  const longest = Math.max(0, ...lines.map((line) => line.length));
  return Array.from({ length: longest }, (_, turn) => lines.flatMap((line) => line.slice(turn, turn + 1))).flat();
}
