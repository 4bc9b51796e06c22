// The components of all environments, as `endpoints.ts` starts them: one HTTP server that answers for their health and
// their version, and tells its parent its port and how often it was asked.
import { once } from "node:events";
import http from "node:http";
import { answerParent } from "./child-process.ts";
import type { EndpointsReport } from "./endpoints.ts";
import { VERSION } from "./web-component.ts";

const VERSION_ANSWER = JSON.stringify({ version: VERSION });

let requests = 0;
const server = http.createServer(({ url = "" }, response) => {
  requests += 1;
  const what = /^\/\d+\/(health|version)$/.exec(url)?.[1];
  if (what === "health") response.end("ok");
  else if (what === "version") response.setHeader("content-type", "application/json").end(VERSION_ANSWER);
  else response.writeHead(404).end();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
answerParent(async (): Promise<EndpointsReport> => {
  const address = server.address();
  return { port: typeof address === "object" && address ? address.port : 0, requests };
});
