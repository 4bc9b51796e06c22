// Jest loads this file as it is, without its transform.
import { tsImport } from "tsx/esm/api";

export default async function globalSetup() {
  const { startTestServers } = await tsImport("./test-servers.ts", import.meta.url);
  globalThis.testServers = await startTestServers();
}
