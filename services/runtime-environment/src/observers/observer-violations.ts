import type { FieldViolation } from "@runtime-cloud/service-kit/errors";
import type { AddressRule } from "./http/address-rule.ts";
import { urlProblem } from "./http/http-url.ts";
import { labelSelectorProblem } from "./kubernetes/label-selector.ts";
import type { HttpComponent, HttpSettings, KubernetesSettings, ObserverSettings } from "./observer-settings.ts";
import { isPrintable } from "./storable.ts";

/** Shortest and longest time for one request. */
const MIN_TIMEOUT_MS = 1;
const MAX_TIMEOUT_MS = 30_000;

/** What an installation has for observers to work with. */
export interface Installation {
  /** Names of the Kubernetes clusters that it knows. */
  clusters: readonly string[];
  rule: AddressRule;
}

/** Why an environment's observers can't work, by the fields of the request; empty when they can, as far as it shows. */
export function observerViolations(settings: ObserverSettings, installation: Installation): FieldViolation[] {
  const { http, kubernetes, push } = settings;
  return [
    ...(http ? httpViolations(http, installation.rule) : []),
    ...(kubernetes ? kubernetesViolations(kubernetes, installation.clusters) : []),
    ...(push ? repeated(push.agents, (index) => `observers.push.agents[${index}]`) : []),
  ];
}

function httpViolations({ components, timeoutMs }: HttpSettings, rule: AddressRule): FieldViolation[] {
  const names = components.map(({ name }) => name);
  const outOfRange = timeoutMs < MIN_TIMEOUT_MS || timeoutMs > MAX_TIMEOUT_MS;
  const description = `must be ${MIN_TIMEOUT_MS} ms to ${MAX_TIMEOUT_MS / 1_000} s; 0 takes the default`;
  return [
    ...(outOfRange ? [{ field: "observers.http.timeout", description }] : []),
    ...repeated(names, (index) => `observers.http.components[${index}].name`),
    ...components.flatMap((component, index) =>
      componentViolations(component, `observers.http.components[${index}]`, rule),
    ),
  ];
}

function componentViolations(component: HttpComponent, at: string, rule: AddressRule): FieldViolation[] {
  const { name, healthUrl, versionUrl, versionField } = component;
  const violations: FieldViolation[] = [];
  if (!isPrintable(name)) {
    violations.push({ field: `${at}.name`, description: "holds characters that don't show" });
  }
  if (healthUrl === "" && versionUrl === "") {
    violations.push({ field: at, description: "names neither healthUrl nor versionUrl: there is nothing to ask" });
  }
  if (versionField !== "" && versionUrl === "") {
    violations.push({ field: `${at}.versionField`, description: "is set without versionUrl" });
  }
  if (versionField.split(".").includes("") && versionField !== "") {
    violations.push({ field: `${at}.versionField`, description: "has an empty step: write it as in build.version" });
  }
  for (const [field, url] of Object.entries({ healthUrl, versionUrl })) {
    const problem = url === "" ? undefined : configuredUrlProblem(url, rule);
    if (problem !== undefined) violations.push({ field: `${at}.${field}`, description: problem });
  }
  return violations;
}

function configuredUrlProblem(url: string, rule: AddressRule): string | undefined {
  const problem = urlProblem(url, rule);
  if (problem !== undefined) return problem;
  return url.includes("#") ? "has a fragment, which is never sent: leave it out" : undefined;
}

function kubernetesViolations({ cluster, labelSelector }: KubernetesSettings, clusters: readonly string[]) {
  const violations: FieldViolation[] = [];
  if (!clusters.includes(cluster)) {
    const known = clusters.length > 0 ? `it knows ${clusters.join(", ")}` : "it knows none";
    violations.push({
      field: "observers.kubernetes.cluster",
      description: `names "${cluster}", which this installation doesn't know: ${known}`,
    });
  }
  const problem = labelSelectorProblem(labelSelector);
  if (problem !== undefined) violations.push({ field: "observers.kubernetes.labelSelector", description: problem });
  return violations;
}

/** A violation for each that was there before. */
export function repeated(names: readonly string[], fieldAt: (index: number) => string): FieldViolation[] {
  const seen = new Set<string>();
  return names.flatMap((name, index) => {
    const isNew = !seen.has(name);
    seen.add(name);
    return isNew ? [] : [{ field: fieldAt(index), description: `names "${name}" a second time` }];
  });
}
