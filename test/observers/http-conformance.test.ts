import { httpObserver } from "@runtime-cloud/runtime-environment/observers/http/http-observer";
import { observerConformance } from "./conformance.ts";
import { cut, endless, says, silence, startHttpSide } from "./http-side.ts";

observerConformance("http", {
  conditions: ["gone", "hanging", "half", "flooding"],
  async start(clock) {
    const { url, port, routes, close } = await startHttpSide();
    const component = (name: string) => ({
      name,
      healthUrl: `${url}/${name}/health?token=s3cr3t-token`,
      versionUrl: `${url}/${name}/version?token=s3cr3t-token`,
      versionField: "",
    });
    const components = [component("web"), component("api")];
    const seen = { replicasDesired: 0, replicasReady: 0, health: "HEALTHY" } as const;
    return {
      observer: httpObserver({
        settings: { components, timeoutMs: 5_000 },
        applied: [],
        clock,
        rule: { loopback: "allow" },
      }),
      expected: [
        { name: "web", componentVersion: "1.4.0", ...seen },
        { name: "api", componentVersion: "2.0.1", ...seen },
      ],
      turn(condition) {
        const spoilt = { well: undefined, gone: cut, hanging: silence, half: silence, flooding: endless }[condition];
        const well = { "/web/health": says("ok"), "/web/version": says({ version: "1.4.0" }) };
        const half = { "/api/health": says("ok"), "/api/version": says("2.0.1\n") };
        for (const [path, route] of Object.entries(well)) routes.set(path, (condition !== "half" && spoilt) || route);
        for (const [path, route] of Object.entries(half)) routes.set(path, spoilt ?? route);
      },
      hidden: ["s3cr3t-token", "127.0.0.1", String(port)],
      close,
    };
  },
});
