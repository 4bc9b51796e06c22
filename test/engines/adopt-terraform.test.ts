import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Adoption, ObservedValue } from "@runtime-cloud/iac-provisioning/engines/engine-adoption";
import type { EngineJob } from "@runtime-cloud/iac-provisioning/engines/engine";
import { lockState, readState, unlockState, writeState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import type { JsonValue } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { readdir } from "node:fs/promises";
import path from "node:path";

import { approved, type BenchEnvironment, type EngineBench, openBench, planned, play } from "./engine-bench.ts";

let bench: EngineBench;
let program: string;
beforeAll(async () => {
  bench = await openBench();
  program = await bench.writeProgram("adoptable-terraform", {
    "program.yaml": PROGRAM,
    "main.tf": MAIN,
    "modules/box/main.tf": MODULE,
  });
});
afterAll(async () => {
  expect(await readdir(path.join(bench.directory, "work"))).toEqual([]);
  await bench.close();
});

const PROGRAM = `
engine: terraform
description: Has a parameter behind every kind of attribute.
parameters:
  size: { type: integer, default: 3 }
  label: { type: string, default: blue }
  zone: { type: string, default: north }
  owner: { type: string, default: team-a }
  title: { type: string, default: team-t }
  subtitle: { type: string, default: team-t }
  services: { type: object, default: { web: { port: 80 }, api: { port: 81 } } }
  twice: { type: string, default: both }
  key: { type: string, default: hidden-value, sensitive: true }
adopts:
  terraform_data.titled#input: title
`;
const MAIN = `
  variable "size" { type = number }
  variable "label" { type = string }
  variable "zone" { type = string }
  variable "owner" { type = string }
  variable "title" { type = string }
  variable "subtitle" { type = string }
  variable "services" { type = map(object({ port = number })) }
  variable "twice" { type = string }
  variable "key" {
    type      = string
    sensitive = true
  }
  locals {
    owned  = "owned by \${var.owner}"
    titled = "titled \${var.title}"
    others = "also \${var.subtitle}"
  }
  resource "terraform_data" "sized" { input = { size = var.size, fixed = "word" } }
  resource "terraform_data" "labelled" { input = "label-\${var.label}-end" }
  resource "terraform_data" "owned" { input = local.owned }
  resource "terraform_data" "titled" { input = local.titled }
  resource "terraform_data" "subtitled" { input = local.others }
  resource "terraform_data" "service" {
    for_each = var.services
    input    = { port = each.value.port }
  }
  resource "terraform_data" "one" { input = "one \${var.twice}" }
  resource "terraform_data" "other" { input = "other \${var.twice}" }
  resource "terraform_data" "keyed" { input = var.key }
  module "box" {
    source = "./modules/box"
    place  = var.zone
  }
`;
const MODULE = `
  variable "place" { type = string }
  resource "terraform_data" "inner" { input = "zone \${var.place}" }
`;

type Edit = readonly [from: string, to: string];

/** An environment whose recorded state was edited, as if a provider had found it so. */
async function drifted(...edits: readonly Edit[]): Promise<BenchEnvironment> {
  const environment = await bench.environment();
  const job = await environment.job(program, {});
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  const { outcome } = await play(bench.engines.terraform.apply({ ...job, ...approved(plan) }));
  expect(outcome).toMatchObject({ result: "applied" });
  await edit(job, edits);
  return environment;
}

async function edit({ state }: EngineJob, edits: readonly Edit[]): Promise<void> {
  const { identity, text } = await readState(state);
  const edited = edits.reduce((before, [from, to]) => {
    expect(before).toContain(from);
    return before.replaceAll(from, to);
  }, text);
  await lockState(state, "edit", "test");
  await writeState(state, "edit", edited.replace(`"serial": ${identity.serial}`, `"serial": ${identity.serial + 1}`));
  await unlockState(state, "edit", "test");
}

async function adopt(environment: BenchEnvironment, ...values: ObservedValue[]): Promise<Adoption> {
  const outcome = await bench.engines.terraform.adopt(await environment.job(program, {}), values);
  if (outcome.result === "failed") throw new Error(`${outcome.failure.code}: ${outcome.failure.message}`);
  return outcome;
}

const value = (address: string, attributePath: string, observed: JsonValue): ObservedValue => ({
  address,
  attributePath,
  observed,
});

test("members, texts, arguments of modules, local values and instances become their parameters", async () => {
  const environment = await drifted(
    ['"size": 3', '"size": 9'],
    ["label-blue-end", "label-red-end"],
    ["zone north", "zone south"],
    ["owned by team-a", "owned by team-b"],
    ['"port": 80\n', '"port": 8080\n'],
    ["titled team-t", "titled team-x"],
  );
  const before = (await readState((await environment.job(program, {})).state)).identity;
  const { parameters, refusals } = await adopt(
    environment,
    value("terraform_data.sized", "input.size", 9),
    value("terraform_data.labelled", "input", "label-red-end"),
    value("module.box.terraform_data.inner", "input", "zone south"),
    value("terraform_data.owned", "input", "owned by team-b"),
    value('terraform_data.service["web"]', "input.port", 8080),
    // Its text could come from another parameter as well: program.yaml says from which it does.
    value("terraform_data.titled", "input", "titled team-x"),
  );
  expect(refusals).toEqual([]);
  expect(parameters).toEqual({
    ...{ size: 9, label: "red", zone: "south", owner: "team-b", title: "team-x" },
    services: { web: { port: 8080 }, api: { port: 81 } },
  });
  const job = await environment.job(program, parameters);
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  expect(plan).toMatchObject({ noChanges: true, state: before });
});

test("what can't be adopted is refused, and each refusal says why", async () => {
  const environment = await drifted(
    ["also team-t", "also team-x"],
    ['"word"', '"other"'],
    ["hidden-value", "another-value"],
    ["label-blue-end", "label-red-end"],
  );
  const values = [
    value("terraform_data.subtitled", "input", "also team-x"),
    value("terraform_data.sized", "input.fixed", "other"),
    value("terraform_data.keyed", "input", "(sensitive value)"),
    value("terraform_data.labelled", "input", "label-green-end"),
    value("terraform_data.sized", "input.size", 3),
    value("terraform_data.sized", "", null),
  ];
  const { refusals } = await adopt(environment, ...values);
  expect(refusals.map(({ address, attributePath }) => [address, attributePath])).toEqual(
    values.map(({ address, attributePath }) => [address, attributePath]),
  );
  expect(refusals.map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/could come from .*title.*adopts: \{ "terraform_data.subtitled#input": … \}/),
    expect.stringContaining("does not tell where it comes from"),
    expect.stringContaining("sensitive"),
    expect.stringContaining("observe the environment again"),
    expect.stringContaining("nothing to adopt"),
    expect.stringContaining("revert it"),
  ]);
});

test("a parameter that other resources hold as well is refused: a plan with it would change them", async () => {
  const environment = await drifted(["one both", "one alone"]);
  const { refusals } = await adopt(environment, value("terraform_data.one", "input", "one alone"));
  expect(refusals.map(({ reason }) => reason)).toEqual([
    expect.stringContaining("changed would change terraform_data.other input"),
  ]);
});

test("an engine that is stopped is an outcome", async () => {
  const job = await (await bench.environment()).job(program, {});
  const kill = AbortSignal.abort();
  const stopped = await bench.engines.terraform.adopt({ ...job, signals: { ...job.signals, kill } }, []);
  expect(stopped).toMatchObject({ result: "failed", failure: { code: "KILLED" } });
});
