import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { Observers, ObserversSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/observers_pb";
import { z } from "zod";

/** For one request, where a request for settings says nothing. */
const DEFAULT_TIMEOUT_MS = 5_000;

/** As in the messages, an empty text is one that isn't set. */
const httpComponent = z.object({
  name: z.string(),
  healthUrl: z.string(),
  versionUrl: z.string(),
  versionField: z.string(),
});

const schema = z.object({
  http: z.object({ components: z.array(httpComponent), timeoutMs: z.number() }).optional(),
  kubernetes: z.object({ cluster: z.string(), namespace: z.string(), labelSelector: z.string() }).optional(),
  push: z.object({ agents: z.array(z.string()) }).optional(),
});

/** Who looks at an environment beside the engine, as its inventory keeps it: an observer that is there looks. */
export type ObserverSettings = z.output<typeof schema>;
export type HttpSettings = NonNullable<ObserverSettings["http"]>;
export type HttpComponent = z.output<typeof httpComponent>;
export type KubernetesSettings = NonNullable<ObserverSettings["kubernetes"]>;
export type PushSettings = NonNullable<ObserverSettings["push"]>;

/** The settings that the column holds; `{}` is none. Throws for what observersOf didn't make. */
export function observerSettings(column: unknown): ObserverSettings {
  return schema.parse(column);
}

/** The settings in a request, for the column. observerViolations says whether they can work. */
export function observersOf({ http, kubernetes, push }: Observers): ObserverSettings {
  const timeoutMs = (http?.timeout && durationMs(http.timeout)) || DEFAULT_TIMEOUT_MS;
  return schema.parse({
    ...(http && { http: { components: http.components, timeoutMs } }),
    ...(kubernetes && { kubernetes }),
    ...(push && { push }),
  });
}

/** The settings as an environment shows them. */
export function observersMessage(settings: ObserverSettings): MessageInitShape<typeof ObserversSchema> {
  const { http, kubernetes, push } = settings;
  return {
    ...(http && { http: { components: http.components, timeout: durationFromMs(http.timeoutMs) } }),
    ...(kubernetes && { kubernetes }),
    ...(push && { push }),
  };
}
