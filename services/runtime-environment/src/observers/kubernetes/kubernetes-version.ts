import type { V1PodTemplateSpec } from "@kubernetes/client-node";
import type { Workload } from "./kubernetes-workload.ts";

const VERSION_LABEL = "app.kubernetes.io/version";
/** Names the container that a pod is about, where it isn't the first. */
const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";
/** How much of a digest is shown, as registries and engines shorten it. */
const SHORT_DIGEST = 12;

/**
 * The version that a workload runs: its label `app.kubernetes.io/version`, or else its image's tag or short digest.
 * Empty when it names neither.
 */
export function versionOf({ object }: Workload): string {
  return object.metadata?.labels?.[VERSION_LABEL] ?? imageVersion(imageOf(object.spec?.template));
}

/** Of `registry:5000/team/app:1.2.3@sha256:…`: the tag, else the digest's first 12 digits, else `latest`. */
export function imageVersion(image: string): string {
  if (image === "") return "";
  const [name = "", digest] = image.split("@");
  const [, tag] = name.slice(name.lastIndexOf("/") + 1).split(":");
  if (tag) return tag;
  return digest === undefined ? "latest" : (digest.split(":")[1] ?? digest).slice(0, SHORT_DIGEST);
}

function imageOf(template: V1PodTemplateSpec | undefined): string {
  const containers = template?.spec?.containers ?? [];
  const main = template?.metadata?.annotations?.[DEFAULT_CONTAINER];
  const container = containers.find(({ name }) => name === main) ?? containers[0];
  return container?.image ?? "";
}
