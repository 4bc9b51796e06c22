/** The BullMQ queue that a subscriber reads. */
export function inboxOf(subscriber: string): string {
  return `${subscriber}.inbox`;
}
