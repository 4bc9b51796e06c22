import { z } from "zod";
import { startChild } from "./child-process.ts";

/** What `endpoints-process.ts` answers. */
const reportSchema = z.object({ port: z.number(), requests: z.number() });
export type EndpointsReport = z.output<typeof reportSchema>;

/** The components that are asked over HTTP, in a process of their own. */
export interface Endpoints {
  readonly url: string;
  /** How often they have been asked so far. */
  requests(): Promise<number>;
  close(): Promise<void>;
}

export async function startEndpoints(): Promise<Endpoints> {
  const child = startChild("endpoints-process.ts");
  const report = async () => reportSchema.parse(await child.ask("how are you?"));
  const { port } = await report();
  return {
    url: `http://127.0.0.1:${port}`,
    requests: async () => (await report()).requests,
    close: () => child.close(),
  };
}
