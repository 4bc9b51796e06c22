/** The same items, of each key some in turn, in the order in which they came. */
export function interleave<Item>(items: readonly Item[], keyOf: (item: Item) => string, some: number): Item[] {
  const byKey = new Map<string, Item[]>();
  for (const item of items) {
    const others = byKey.get(keyOf(item));
    if (others) others.push(item);
    else byKey.set(keyOf(item), [item]);
  }
  const lines = [...byKey.values()];
  const turns = Math.ceil(Math.max(0, ...lines.map((line) => line.length)) / some);
  return Array.from({ length: turns }, (_, turn) =>
    lines.flatMap((line) => line.slice(turn * some, (turn + 1) * some)),
  ).flat();
}
