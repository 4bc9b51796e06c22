/** Whether an address to listen on is reachable from this machine only. Names are not resolved: only `localhost` is. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
