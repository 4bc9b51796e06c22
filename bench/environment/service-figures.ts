/** What a process of RuntimeEnvironmentService did during some work, by its own metrics. */
export interface WorkDone {
  readonly seconds: number;
  /** Of all its threads: garbage collection and the answering of its metrics are in it. */
  readonly cpuSeconds: number;
  /** Sights that were taken in and moved nothing, by observer. */
  readonly unchanged: Readonly<Record<Observer, number>>;
  /** Sights that changed something, were failures or came too late. */
  readonly otherwise: number;
}

type Observer = (typeof OBSERVERS)[number];

const OBSERVERS = ["engine", "http", "push"] as const;
const CPU = "process_cpu_seconds_total";
const SIGHTS = ["observations_total", "observations_ignored_total"];
const MS_PER_SECOND = 1_000;

export async function workDuring(adminUrl: string, work: () => Promise<unknown>): Promise<WorkDone> {
  const before = await samplesOf(adminUrl);
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / MS_PER_SECOND;
  const after = await samplesOf(adminUrl);
  const sum = (isOfIt: (sample: Sample) => boolean) => total(after, isOfIt) - total(before, isOfIt);
  const unchangedOf = (observer: Observer) =>
    sum(
      ({ name, labels }) => SIGHTS.includes(name) && isUnchanged(labels) && labels.includes(`observer="${observer}"`),
    );
  return {
    seconds,
    cpuSeconds: sum(({ name }) => name === CPU),
    unchanged: { engine: unchangedOf("engine"), http: unchangedOf("http"), push: unchangedOf("push") },
    otherwise: sum(({ name, labels }) => SIGHTS.includes(name) && !isUnchanged(labels)),
  };
}

/** Throws unless sights of each observer were taken in, and none moved anything. */
export function checkUnchanged({ unchanged, otherwise }: WorkDone): void {
  if (OBSERVERS.every((observer) => unchanged[observer] > 0) && otherwise === 0) return;
  throw new Error(`sights that moved nothing: ${JSON.stringify(unchanged)}, and ${otherwise} others`);
}

async function samplesOf(adminUrl: string): Promise<Sample[]> {
  const response = await fetch(`${adminUrl}/metrics`);
  if (!response.ok) throw new Error(`the service's metrics answer with status ${response.status}`);
  return [...(await response.text()).matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = "", labels = "", value]) => {
      return { name, labels, value: Number(value) };
    },
  );
}

function isUnchanged(labels: string): boolean {
  return labels.includes('outcome="unchanged"');
}

function total(samples: readonly Sample[], isOfIt: (sample: Sample) => boolean): number {
  return samples.filter(isOfIt).reduce((sum, { value }) => sum + value, 0);
}

interface Sample {
  readonly name: string;
  /** As they are written: `observer="engine",outcome="unchanged"`. */
  readonly labels: string;
  readonly value: number;
}
