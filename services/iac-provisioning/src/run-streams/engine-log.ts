import type { EngineEvent } from "../engines/engine-event.ts";
import type { EngineName } from "../engines/engine.ts";
import type { LoggedLine } from "./log-cut.ts";

/** What an event adds to the run's log, as lines. Of its steps the CLI speaks itself; the manifests engine doesn't. */
export function logLines(engine: EngineName, event: EngineEvent): LoggedLine[] {
  if (event.type === "log") return linesOf(event.line, event.level === "error");
  if (event.type === "diagnostic") {
    const { severity, address, summary, detail } = event.diagnostic;
    const text = `${severity}: ${address === undefined ? "" : `${address}: `}${summary}\n${detail}`;
    return linesOf(text, severity === "error");
  }
  return engine === "manifests" ? linesOf(stepLine(event), event.type === "resource-failed") : [];
}

function stepLine(event: Exclude<EngineEvent, { type: "log" | "diagnostic" }>): string {
  switch (event.type) {
    case "change-planned":
      return `${event.change.address}: ${event.change.actions.join(", ")} planned`;
    case "resource-started":
      return `${event.address}: ${event.action}`;
    case "resource-applied":
      return `${event.address}: ${event.action} done after ${event.durationMs} ms`;
    case "resource-failed":
      return `${event.address}: ${event.action} failed after ${event.durationMs} ms`;
  }
}

function linesOf(text: string, isError: boolean): LoggedLine[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => ({ text: line, isError }));
}
