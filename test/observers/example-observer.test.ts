import { systemResolve } from "@runtime-cloud/runtime-environment/observers/http/http-get";
import { observerConformance } from "./conformance.ts";
import { fleetObserver } from "./example-observer.ts";
import { cut, endless, says, silence, startHttpSide } from "./http-side.ts";

const web = { name: "web", version: "1.4.0", wanted: 3, running: 3 };
const worker = { name: "worker", version: "1.4.0", wanted: 2, running: 1 };
const { running: _unreached, ...unreachedWorker } = worker;

observerConformance("example", {
  conditions: ["gone", "hanging", "half", "flooding"],
  async start(clock) {
    const { url, port, routes, close } = await startHttpSide();
    const answers = {
      well: says([web, worker]),
      gone: cut,
      hanging: silence,
      half: says([web, unreachedWorker]),
      flooding: endless,
    };
    const access = { rule: { loopback: "allow" }, resolve: systemResolve } as const;
    return {
      observer: fleetObserver(`${url}/fleet?token=s3cr3t-token`, { access, clock }),
      expected: [
        { name: "web", componentVersion: "1.4.0", replicasDesired: 3, replicasReady: 3, health: "HEALTHY" },
        { name: "worker", componentVersion: "1.4.0", replicasDesired: 2, replicasReady: 1, health: "DEGRADED" },
      ],
      turn: (condition) => void routes.set("/fleet", answers[condition]),
      hidden: ["s3cr3t-token", "127.0.0.1", String(port)],
      close,
    };
  },
});
