// Runs in a new network and holds it open: brings its loopback up, opens the one port that answers in it, and hands that
// to its parent. Ends with its parent. Plain JavaScript, so that it starts at once. Arguments: address and port.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";

const [address, port] = process.argv.slice(2);
const ERRORS_SHOWN = { stdio: ["ignore", "ignore", "inherit"] };
const IFF_UP = "0x1";

switchLoopbackOn();

process.on("disconnect", () => process.exit());
// The parent takes what connects; a socket that both listened on would give some of it to us.
const gate = createServer().listen(Number(port), address, () => process.send("open", gate, () => gate.close()));

// A sysfs that is mounted in here shows this network's devices, and needs no other tool to switch one on. An ordinary
// user may not write it, in no namespace, and so needs iproute2.
function switchLoopbackOn() {
  try {
    execFileSync("mount", ["-t", "sysfs", "sysfs", "/sys"]);
    writeFileSync("/sys/class/net/lo/flags", IFF_UP);
  } catch {
    execFileSync("ip", ["link", "set", "lo", "up"], ERRORS_SHOWN);
  }
}
