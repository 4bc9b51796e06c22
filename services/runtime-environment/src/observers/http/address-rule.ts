import { BlockList, isIP } from "node:net";
import { isLoopback } from "@runtime-cloud/service-kit/loopback";

/** Which addresses an observer may connect to. */
export interface AddressRule {
  /** This machine's own; a host that runs everything on one machine allows them. */
  loopback: "allow" | "deny";
}

/*
 * What no component of an environment can be at. Cloud metadata services hand out credentials to whoever asks from
 * inside, so they come first. BlockList matches IPv4 rules against IPv4-mapped IPv6 addresses as well.
 */
const kinds = [
  {
    what: "a metadata service",
    ranges: ["169.254.169.254/32", "100.100.100.200/32", "fd00:ec2::254/128", "fd20:ce::254/128"],
  },
  // 64:ff9b::/96 and 2002::/16 carry an IPv4 address inside.
  { what: "a link-local address", ranges: ["169.254.0.0/16", "fe80::/10", "64:ff9b::a9fe:0/112", "2002:a9fe::/32"] },
  { what: "an unspecified address", ranges: ["0.0.0.0/8", "::/128"] },
  { what: "a multicast address", ranges: ["224.0.0.0/4", "ff00::/8"] },
  { what: "a broadcast or reserved address", ranges: ["240.0.0.0/4"] },
].map(({ what, ranges }) => ({ what, list: blockList(ranges) }));

const loopback = blockList(["127.0.0.0/8", "::1/128", "64:ff9b::7f00:0/104", "2002:7f00::/24"]);

/** What is wrong with connecting to an IP address, as in `a link-local address`; undefined: nothing. */
export function addressProblem(address: string, rule: AddressRule): string | undefined {
  const version = isIP(address);
  if (version === 0) return "no IP address";
  const family = version === 6 ? "ipv6" : "ipv4";
  if (rule.loopback === "deny" && loopback.check(address, family)) return "this machine itself";
  return kinds.find(({ list }) => list.check(address, family))?.what;
}

/** What is wrong with a URL's host as far as it shows without resolving it. */
export function hostProblem({ hostname }: URL, rule: AddressRule): string | undefined {
  const host = literalHost(hostname);
  if (isIP(host) !== 0) return addressProblem(host, rule);
  return rule.loopback === "deny" && (isLoopback(host) || host.endsWith(".localhost"))
    ? "this machine itself"
    : undefined;
}

/** The host without the brackets that an IPv6 address has in a URL, and without the dot at a full name's end. */
export function literalHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", prefix] = range.split("/");
    list.addSubnet(net, Number(prefix), isIP(net) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}
