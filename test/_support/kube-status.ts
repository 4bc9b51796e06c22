import type { ServerResponse } from "node:http";

/** How an API server refuses: an object of kind Status. */
export interface KubeStatus {
  code: number;
  reason: string;
  message: string;
}

export function statusObject({ code, reason, message }: KubeStatus) {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}

export function answerStatus(response: ServerResponse, status: KubeStatus): void {
  answerJson(response, status.code, statusObject(status));
}

export function answerJson(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json", "audit-id": "6f1c4d5e" });
  response.end(`${JSON.stringify(body)}\n`);
}

export const unauthorized: KubeStatus = { code: 401, reason: "Unauthorized", message: "Unauthorized" };

export const expiredContinue: KubeStatus = {
  code: 410,
  reason: "Expired",
  message:
    "The provided continue parameter is too old to display a consistent list result. You can start a new list " +
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the " +
    "results.",
};

export function tooOld(resourceVersion: number, current: number): KubeStatus {
  const message = `too old resource version: ${resourceVersion} (${current})`;
  return { code: 410, reason: "Expired", message };
}

export function forbidden(user: string, verb: string, resource: string, namespace: string): KubeStatus {
  const message =
    `${resource}.apps is forbidden: User "${user}" cannot ${verb} resource "${resource}" in API group "apps" ` +
    `in the namespace "${namespace}"`;
  return { code: 403, reason: "Forbidden", message };
}

export function namespaceNotFound(name: string): KubeStatus {
  return { code: 404, reason: "NotFound", message: `namespaces "${name}" not found` };
}

export function badSelector(selector: string): KubeStatus {
  const message = `unable to parse requirement: found '${selector}', expected: ',' or 'end of string'`;
  return { code: 400, reason: "BadRequest", message };
}
