import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "./context.ts";
import { resolveVanished } from "./findings/finding-vanishing.ts";
import { enqueueDueLooks } from "./observing/schedule.ts";
import { endFreshness, STALENESS } from "./observing/staleness.ts";
import { proposeDue } from "./proposals/auto-propose.ts";
import { expireProposals, followUpAccepted, followUpPreviews } from "./proposals/proposal-deadlines.ts";
import { endDueRules, endDueSuppressions } from "./suppression/suppression-ending.ts";

/** Everything that ends by time, each read as due by the database's clock. */
export function deadlines(context: Context): Deadline[] {
  return [
    { kind: "observation", sweepEveryMs: 5_000, run: () => enqueueDueLooks(context) },
    { kind: STALENESS, sweepEveryMs: 15_000, run: () => endFreshness(context) },
    { kind: "proposal-expiry", sweepEveryMs: 15_000, run: () => expireProposals(context) },
    { kind: "acceptance", sweepEveryMs: 5_000, run: () => followUpAccepted(context) },
    { kind: "preview", sweepEveryMs: 5_000, run: () => followUpPreviews(context) },
    { kind: "suppression-end", sweepEveryMs: 15_000, run: () => endDueSuppressions(context) },
    { kind: "suppression-rule-end", sweepEveryMs: 15_000, run: () => endDueRules(context) },
    { kind: "vanished-drift", sweepEveryMs: 5_000, run: () => resolveVanished(context) },
    { kind: "auto-propose", sweepEveryMs: 10_000, run: () => proposeDue(context) },
  ];
}
