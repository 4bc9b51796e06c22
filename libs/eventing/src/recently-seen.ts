/** A set that remembers its last `capacity` members only. */
export interface RecentlySeen {
  /** False when the member was there already. */
  add(member: string): boolean;
  forget(member: string): void;
}

export function recentlySeen(capacity: number): RecentlySeen {
  const members = new Set<string>();
  return {
    add(member) {
      const fresh = !members.delete(member);
      members.add(member);
      const [oldest] = members;
      if (members.size > capacity && oldest !== undefined) members.delete(oldest);
      return fresh;
    },
    forget: (member) => void members.delete(member),
  };
}
