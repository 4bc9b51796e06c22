/**
 * Opens a closed network as the user that this process runs as, and prints what a command in it sees of two ports, the
 * one that the network is for and another; or why there is no such network.
 */
import { closedNetwork } from "@runtime-cloud/iac-provisioning/engines/sandbox/sandbox-network";
import { run } from "@runtime-cloud/iac-provisioning/engines/sandbox/subprocess";

const [address = "", other = ""] = process.argv.slice(2);
const never = new AbortController().signal;
try {
  const network = await closedNetwork(address, "/usr/bin:/bin");
  const look = (port: string) => `(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>&- && echo open || echo closed`;
  const command = {
    binary: "/bin/bash",
    args: ["-c", [new URL(address).port, other].map(look).join(";")],
    directory: "/",
    environment: {},
    signals: { interrupt: never, kill: never },
    sandbox: { network, searchPath: "/usr/bin:/bin" },
  };
  for await (const line of run(command, (output) => [output.line])) process.stdout.write(`${line}\n`);
  network.close();
} catch (error) {
  process.stdout.write(`${JSON.stringify(error)}\n`);
}
