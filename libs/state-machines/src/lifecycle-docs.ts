import type { AnyStateMachine } from "xstate";
import { CREATE, machinesOf, UNBORN, type ServiceName } from "./lifecycle-edges.ts";
import { announcedAtCreation, birthEvents, initialState, type TableRow, transitionTable } from "./transition-table.ts";

/** `docs/lifecycles.md`: a diagram and two tables for each machine. */
export function lifecycleDocs(): string {
  const services: ServiceName[] = ["iac-provisioning", "execution-capacity", "runtime-environment"];
  return [
    "# Lifecycles",
    "",
    "Generated from the machines in `libs/state-machines`; `npm run gen` writes this page anew.",
    "A refused event changes nothing and answers FAILED_PRECONDITION with the events that were allowed.",
    ...services.flatMap((service) => machinesOf[service].flatMap((machine) => section(service, machine))),
    "",
  ].join("\n");
}

function section(service: ServiceName, machine: AnyStateMachine): string[] {
  return [
    "",
    `## ${machine.id}`,
    "",
    `Service: \`${service}\`.`,
    "",
    "```mermaid",
    ...mermaid(machine),
    "```",
    "",
    "| State | Who acts next |",
    "| --- | --- |",
    ...Object.entries(machine.states).map(
      ([name, node]) => `| ${name} | ${node.type === "final" ? "– " : ""}${node.description ?? ""} |`,
    ),
    "",
    "| From | Event | Only if | To | Announces |",
    "| --- | --- | --- | --- | --- |",
    `| ${UNBORN} | ${CREATE} | | ${initialState(machine)} | ${announcedAtCreation(machine).join(", ")} |`,
    ...[...births(machine), ...transitionTable(machine)].map(
      ({ from, event, guard, to, announces }) => `| ${from} | ${event} | ${guard} | ${to} | ${announces.join(", ")} |`,
    ),
  ];
}

function mermaid(machine: AnyStateMachine): string[] {
  const ends = Object.entries(machine.states).filter(([, node]) => node.type === "final");
  return [
    "stateDiagram-v2",
    `  [*] --> ${initialState(machine)}`,
    ...[...births(machine), ...transitionTable(machine)].map(
      ({ from, event, guard, to }) => `  ${from} --> ${to}: ${event}${guard && ` [${guard}]`}`,
    ),
    ...ends.map(([name]) => `  ${name} --> [*]`),
  ];
}

/** The ways of rows whose first event comes before they are saved. */
function births(machine: AnyStateMachine): TableRow[] {
  return transitionTable(machine)
    .filter(({ from, event }) => from === initialState(machine) && birthEvents(machine).includes(event))
    .map((way) => ({ ...way, from: UNBORN }));
}
