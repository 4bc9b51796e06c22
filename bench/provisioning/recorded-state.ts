import { z } from "zod";

const state = z.object({ resources: z.array(z.object({ instances: z.array(z.unknown()) })) });

/** Throws unless a state's text records so many resources. */
export function checkRecorded(text: string, resources: number): void {
  const recorded = state.parse(JSON.parse(text)).resources.reduce((sum, { instances }) => sum + instances.length, 0);
  if (recorded !== resources) throw new Error(`the state records ${recorded} of ${resources} resources`);
}
