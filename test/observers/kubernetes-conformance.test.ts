import type { ServerResponse } from "node:http";
import { kubeObjectOf } from "../_support/kube-objects.ts";
import { type Condition, observerConformance } from "./conformance.ts";
import { startKubernetesSide } from "./kubernetes-side.ts";

observerConformance("kubernetes", {
  conditions: ["gone", "hanging", "half", "flooding"],
  async start(clock) {
    const { server, observer, close } = await startKubernetesSide();
    server.store.put(kubeObjectOf("Deployment"), kubeObjectOf("StatefulSet"), kubeObjectOf("DaemonSet"));
    const well = { health: "HEALTHY" } as const;
    return {
      observer: observer("", clock),
      expected: [
        { name: "web", componentVersion: "1.4.2", replicasDesired: 3, replicasReady: 3, ...well },
        { name: "database", componentVersion: "15.18", replicasDesired: 2, replicasReady: 2, ...well },
        { name: "shop-log-agent", componentVersion: "9c2d0b5f3a7e", replicasDesired: 4, replicasReady: 4, ...well },
      ],
      turn(condition) {
        server.fault = faults[condition];
      },
      hidden: [server.token, "127.0.0.1", String(server.port)],
      close,
    };
  },
});

type Fault = ((asked: string, response: ServerResponse) => boolean) | undefined;

const faults: Record<Condition, Fault> = {
  well: undefined,
  gone: (_asked, response) => {
    response.destroy();
    return true;
  },
  hanging: () => true,
  half: (asked) => asked === "list statefulsets",
  flooding: (_asked, response) => {
    const chunk = " ".repeat(65_536);
    const write = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", write);
    write();
    return true;
  },
};
