import { beforeAll, describe, expect, test } from "@jest/globals";
import { fileURLToPath } from "node:url";

import { type Catalogue, readCatalogue } from "../../tools/conformance/catalogue.ts";
import { compare, type Implementation } from "../../tools/conformance/compare.ts";
import { implementationOf } from "../../tools/conformance/implementation.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

let catalogue: Catalogue;
let implementation: Implementation;
beforeAll(async () => {
  [catalogue, implementation] = await Promise.all([readCatalogue(), implementationOf(root)]);
});

test("the repository speaks the catalogue: 44 events, 20 commands, 26 subscriptions, no difference", () => {
  const comparisons = compare(catalogue, implementation);
  expect(comparisons.flatMap(({ differences }) => differences)).toEqual([]);
  const found = (kind: string) =>
    comparisons.filter((comparison) => comparison.kind.startsWith(kind)).map((comparison) => comparison.found);
  expect({ events: found("events").at(0), commands: found("commands"), subscriptions: found("subscriptions") }).toEqual(
    {
      events: 44,
      commands: [6, 14],
      subscriptions: [26, 2],
    },
  );
});

describe("a catalogue that changes is seen in", () => {
  const expectDifference = (change: (model: Model) => void, ...lines: unknown[]) => {
    const model = modelOf(structuredClone(catalogue));
    change(model);
    expect(compare(model.catalogue, implementation).flatMap(({ differences }) => differences)).toEqual(lines);
  };

  test.each([
    ["CapacityLeaseReleased", "leaseId", "guid", "string"],
    ["CapacityLeaseReleased", "state", "enum:LeaseState", "enum:RunState"],
    ["CapacityLeaseReleased", "executionSeconds", "long", "int"],
    ["RunCompleted", "outcomeHash", "hash", "string"],
    ["UsageRecorded", "quantity", "decimal", "string"],
    ["SourceScopeChanged", "entries", "list:string", "string"],
    ["ApprovalRequested", "expiresAt", "datetime", "string"],
    ["ProvisioningApplied", "outputs", "json", "string"],
    ["ReservationSettled", "uncertain", "bool", "int"],
  ])("the type of a field, %s.%s", (event, name, is, type) => {
    expectDifference(
      ({ field }) => (field(event, name).type = type),
      `${event}.${name}: type is ${is}; the catalogue says ${type}`,
    );
  });

  test.each([
    ["ProvisioningApplied", "promotionId", false],
    ["ProvisioningApplied", "specificationVersion", true],
    ["ReservationSettled", "uncertain", true],
    ["SpecificationDeclared", "kind", true],
  ])("whether a field is required, %s.%s", (event, name, is) => {
    expectDifference(
      ({ field }) => (field(event, name).required = !is),
      `${event}.${name}: required is ${is}; the catalogue says ${!is}`,
    );
  });

  test("a field more, and a field less", () => {
    expectDifference(
      ({ event }) => {
        event("InvoiceIssued").fields[0] = { name: "invoiceNumber", type: "string", required: true };
      },
      "InvoiceIssued.invoiceNumber: the proto message lacks this field of the catalogue",
      "InvoiceIssued.invoiceId: the catalogue has no such field",
    );
  });

  test.each(["description", "topic", "producer", "context", "scope", "version", "aggregate"] as const)(
    "the %s of an event",
    (property) => {
      expectDifference(
        ({ event }) => (event("BudgetUpdated")[property] = "another"),
        expect.stringMatching(`^BudgetUpdated: ${property} is .+; the catalogue says another$`),
      );
    },
  );

  test("the consumers of an event, and their order", () => {
    expectDifference(
      ({ event }) => event("BudgetUpdated").consumers.push("SloService"),
      "BudgetUpdated: consumers is [StudioBff, AuditService]; the catalogue says [StudioBff, AuditService, SloService]",
    );
    expectDifference(
      ({ event }) => event("BudgetUpdated").consumers.reverse(),
      "BudgetUpdated: consumers is [StudioBff, AuditService]; the catalogue says [AuditService, StudioBff]",
    );
  });

  test("an event more, ours: nothing declares it, and no machine announces it", () => {
    expectDifference(
      ({ ours, event }) => ours.events.push({ ...structuredClone(event("QuotaChanged")), name: "QuotaRetired" }),
      "QuotaRetired: no proto message declares this event of the catalogue",
      "QuotaRetired: no edge of any machine announces it",
    );
  });

  test("an event less, ours: it is declared and announced without being in the catalogue", () => {
    expectDifference(
      ({ ours }) =>
        ours.events.splice(
          ours.events.findIndex(({ name }) => name === "QuotaExceeded"),
          1,
        ),
      "QuotaExceeded: the catalogue has no such event, and it isn't marked as assumed",
      "QuotaExceeded: a machine announces it, but it is no event of our plane",
    );
  });

  test("an event that was assumed and is there now", () => {
    expectDifference(
      ({ theirs, event }) => theirs.events.push({ ...structuredClone(event("LeaseExpired")), name: "SandboxReleased" }),
      "SandboxReleased: no proto message declares this event of the catalogue",
      ...["attemptId", "leaseId", "holder"].map(
        (name) => `SandboxReleased.${name}: the proto message lacks this field of the catalogue`,
      ),
      ...["sandboxId", "tenantId", "reason"].map((name) => `SandboxReleased.${name}: the catalogue has no such field`),
      "SandboxReleased: marked as assumed, but the catalogue has it",
    );
  });

  test("a command: its service, its aggregate, its result events, its summary", () => {
    expectDifference(
      ({ command }) => Object.assign(command("SetQuota"), { handledBy: "Tenant", resultEvents: ["QuotaExceeded"] }),
      "SetQuota: handledBy is Quota; the catalogue says Tenant",
      "SetQuota: resultEvents is [QuotaChanged]; the catalogue says [QuotaExceeded]",
    );
    expectDifference(
      ({ command }) => Object.assign(command("CancelRun"), { service: "WorkflowEngineService", summary: "Stop it." }),
      "CancelRun: service is RunControlService; the catalogue says WorkflowEngineService",
      "CancelRun: summary is Record cancellation intent; interruption is requested from the lease holder.; the catalogue says Stop it.",
    );
  });

  test("a command more, and a command less", () => {
    expectDifference(
      ({ command }) => (command("CancelProvisioning").name = "AbortProvisioning"),
      "AbortProvisioning: proto declares no such command of IaCProvisioningService",
      "CancelProvisioning: the catalogue has no such command",
    );
  });

  test("a subscription: its handler, its purpose, its absence", () => {
    expectDifference(
      ({ ours }) => Object.assign(ours.consumed[0] ?? {}, { handler: "ApplyPromotion", purpose: "Another." }),
      "IaCProvisioningService on PromotionApproved: handler is ProvisionPromotion; the catalogue says ApplyPromotion",
      expect.stringMatching(
        /^IaCProvisioningService on PromotionApproved: purpose is .+; the catalogue says Another\.$/,
      ),
    );
    expectDifference(
      ({ theirs }) => theirs.consumed.pop(),
      "RunControlService on BudgetReservationDenied: the catalogue has no such subscription",
    );
  });
});

describe("an implementation that changes is seen in", () => {
  const expectDifference = (change: Partial<Implementation>, ...lines: unknown[]) => {
    const differences = compare(catalogue, { ...implementation, ...change }).flatMap((found) => found.differences);
    expect(differences).toEqual(lines);
  };
  const releaseSandbox = {
    consumer: "ExecutionCapacityService",
    event: "SandboxReleased",
    handler: "ReleaseSandboxLease",
  };

  test("a handler less, and a handler more", () => {
    const { handlers } = implementation;
    expectDifference(
      { handlers: handlers.filter(({ handler }) => handler !== "ReleaseSandboxLease") },
      "ExecutionCapacityService on SandboxReleased by ReleaseSandboxLease: the service's code has no such handler",
    );
    const more = { ...releaseSandbox, event: "QuotaChanged" };
    expectDifference(
      { handlers: [...handlers, more] },
      "ExecutionCapacityService on QuotaChanged by ReleaseSandboxLease: the code has this handler, but proto has no such subscription",
    );
  });

  test("a handler without a test", () => {
    const { testTitles } = implementation;
    expectDifference(
      { testTitles: testTitles.filter((title) => !title.includes("ReleaseSandboxLease")) },
      "ExecutionCapacityService on SandboxReleased by ReleaseSandboxLease: no test's title under test/ names the handler",
    );
  });

  test("an event that is declared, but not delivered", () => {
    const { delivered } = implementation;
    expectDifference(
      { delivered: delivered.filter((name) => name !== "InvoiceIssued") },
      "InvoiceIssued: declared in proto, but not in the modules in libs/contracts/src/event-catalogue.ts",
    );
  });

  test("a subscription beyond the pages that nobody decided", () => {
    const [, ...beyondPages] = implementation.beyondPages;
    expectDifference(
      { beyondPages },
      "RuntimeEnvironmentService on EnvironmentCreated: the catalogue has no such subscription",
    );
  });
});

type Plane = Catalogue["planes"][number];
type Model = ReturnType<typeof modelOf>;

/** A catalogue with ways to the parts of it that a test changes. */
function modelOf(changed: Catalogue) {
  const plane = (wanted: string): Plane => named(changed.planes, (one) => one.plane, wanted);
  const event = (name: string) =>
    named(
      changed.planes.flatMap(({ events }) => events),
      nameOf,
      name,
    );
  return {
    catalogue: changed,
    ours: plane("Runtime Cloud"),
    theirs: plane("Control Plane"),
    event,
    field: (of: string, name: string) => named(event(of).fields, nameOf, name),
    command: (name: string) =>
      named(
        changed.planes.flatMap(({ commands }) => commands),
        nameOf,
        name,
      ),
  };
}

function named<Thing>(things: readonly Thing[], naming: (thing: Thing) => string, name: string): Thing {
  const found = things.find((thing) => naming(thing) === name);
  if (!found) throw new Error(`the catalogue has no ${name}`);
  return found;
}

function nameOf({ name }: { name: string }): string {
  return name;
}
