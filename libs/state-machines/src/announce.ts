import type { IntegrationEventName } from "./integration-event.ts";

/** Names the integration event that an emit action sends, so that tables and diagrams can print it. */
export function announcing<Action extends object>(announces: IntegrationEventName, action: Action) {
  return Object.assign(action, { announces });
}

/** The name given by `announcing`, if the action has one. */
export function announcedBy(action: unknown): string | undefined {
  return typeof action === "function" && "announces" in action ? String(action.announces) : undefined;
}
