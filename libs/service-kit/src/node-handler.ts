import { type ConnectRouter, type ConnectRouterOptions, createConnectRouter } from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "./logger.ts";
import type { AnyHandler } from "./mux.ts";

/**
 * Answers Node's requests by the routes, as `connectNodeAdapter` does. That one prints on the console what went wrong
 * with writing an answer, which is nothing but a client that left amid a stream.
 */
export function nodeHandler(
  { routes, ...options }: ConnectRouterOptions & { routes: (router: ConnectRouter) => void },
  logger: Logger,
): AnyHandler {
  const router = createConnectRouter(options);
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const handler = handlers.get(path);
    if (!handler) {
      response.writeHead(404).end();
      return;
    }
    handler(universalRequestFromNodeRequest(request, response, undefined, undefined))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((err: unknown) => {
        const level = response.destroyed ? "debug" : "error";
        logger[level]({ err, method: path.slice(1) }, "an answer didn't get out");
      });
  };
}
