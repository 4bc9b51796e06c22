import type { OutputLine } from "@runtime-cloud/iac-provisioning/engines/sandbox/line-splitter";
import { scrubber } from "@runtime-cloud/iac-provisioning/engines/redaction/scrub";
import { terraformFailure } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-failure";
import { terraformMessageReader } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-messages";
import { textDiagnostics } from "@runtime-cloud/iac-provisioning/engines/text-diagnostics";
import { expect, test } from "@jest/globals";

import { NEVER } from "./engine-bench.ts";

const FAILED = { code: 1, signal: null, directory: "/", directoryFull: false };

test("a diagnostic tells file and line, and nothing of the snippet with its values", () => {
  const { events, isMessage } = read({
    type: "diagnostic",
    diagnostic: {
      severity: "error",
      summary: "Invalid index",
      detail: "The given key does not identify an element.",
      address: "vm.a",
      range: { filename: "modules/net/main.tf", start: { line: 12, column: 3, byte: 9 }, end: { line: 12, column: 9 } },
      snippet: {
        context: 'resource "vm" "a"',
        code: "  key = local.keys[var.name]",
        values: [{ traversal: "local.keys", statement: 'is object with "hidden-by-nobody"' }],
      },
    },
  });
  expect(isMessage).toBe(true);
  expect(events).toEqual([
    {
      type: "diagnostic",
      diagnostic: {
        severity: "error",
        summary: "Invalid index",
        detail: "The given key does not identify an element.",
        address: "vm.a",
        location: "modules/net/main.tf line 12",
      },
    },
  ]);
});

test("a diagnostic whose place has another form is told without it, and one of a new severity is an error", () => {
  const diagnostic = { severity: "invalid", summary: "Broken", range: { from: 1 } };
  expect(read({ type: "diagnostic", diagnostic }).events).toMatchObject([
    { diagnostic: { severity: "error", summary: "Broken", detail: "" } },
  ]);
});

test("a message that was cut is not shown, for it may be a piece of a state", () => {
  const { events, isMessage } = line('{"@level":"info","@message":"s3cret');
  expect(isMessage).toBe(false);
  expect(events).toEqual([{ type: "log", level: "info", line: "(a message of 35 characters that cannot be read)" }]);
});

test("errors in the CLI's human form keep their place and lose the quoted program with its values", () => {
  const lines = [
    "╷",
    "│ Error: Unsupported argument",
    "│ ",
    "│   with terraform_data.a,",
    '│   on main.tf line 3, in resource "terraform_data" "a":',
    '│    3:   colour = "s3cret-of-the-program"',
    "│     ├────────────────",
    '│     │ var.name is "s3cret-value"',
    "│ ",
    '│ An argument named "colour" is not expected here.',
    "╵",
    "╷",
    "│ Error: Another",
    "╵",
  ];
  const diagnostics = textDiagnostics(lines);
  expect(diagnostics).toEqual([
    {
      severity: "error",
      summary: "Unsupported argument",
      detail: 'An argument named "colour" is not expected here.',
      address: "terraform_data.a",
      location: "main.tf line 3",
    },
    { severity: "error", summary: "Another", detail: "" },
  ]);
  expect(terraformFailure(FAILED, diagnostics, NEVER)).toEqual({
    code: "INVALID_PROGRAM",
    message: 'main.tf line 3: Unsupported argument: An argument named "colour" is not expected here.',
    address: "terraform_data.a",
  });
});

test.each([
  ["Failed to query available provider packages", "PROVIDER_UNAVAILABLE"],
  ["Failed to install provider", "PROVIDER_UNAVAILABLE"],
  ["Failed to load plugin schemas", "PROVIDER_UNAVAILABLE"],
  ["Invalid value for variable", "INVALID_INPUT"],
  ["No value for required variable", "INVALID_INPUT"],
  ["Unsupported block type", "INVALID_PROGRAM"],
  ["Module not installed", "INVALID_PROGRAM"],
  ["Saved plan is stale", "STALE_PLAN"],
  ["Error acquiring the state lock", "STATE_LOCKED"],
  ["Error loading state: 500", "STATE_REFUSED"],
  ["creating EC2 Instance: quota exceeded", "ENGINE_ERROR"],
])("%s is %s", (summary, code) => {
  expect(terraformFailure(FAILED, [{ severity: "error", summary, detail: "" }], NEVER).code).toBe(code);
});

test("what a provider says of a resource's own arguments is its error, not the program's", () => {
  const summary = "updating Security Group: InvalidParameterValue: the configuration block of the argument";
  const diagnostic = { severity: "error", summary, detail: "", address: "aws_security_group.web" } as const;
  expect(terraformFailure(FAILED, [diagnostic], NEVER)).toMatchObject({
    code: "ENGINE_ERROR",
    address: "aws_security_group.web",
  });
});

function read(message: object) {
  return line(JSON.stringify({ "@level": "error", "@message": "m", "@timestamp": "2026-01-01T00:00:00Z", ...message }));
}

function line(text: string) {
  const output: OutputLine = { stream: "stdout", line: text };
  return terraformMessageReader(scrubber([]))(output);
}
