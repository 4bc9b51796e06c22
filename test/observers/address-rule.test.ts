import { expect, test } from "@jest/globals";
import { addressProblem, hostProblem } from "@runtime-cloud/runtime-environment/observers/http/address-rule";

const allow = { loopback: "allow" } as const;
const deny = { loopback: "deny" } as const;

test.each([
  ["169.254.169.254", "a metadata service"],
  ["100.100.100.200", "a metadata service"],
  ["fd00:ec2::254", "a metadata service"],
  ["::ffff:169.254.169.254", "a metadata service"],
  ["::ffff:a9fe:a9fe", "a metadata service"],
  ["169.254.0.1", "a link-local address"],
  ["fe80::1", "a link-local address"],
  ["febf::1", "a link-local address"],
  ["64:ff9b::169.254.169.254", "a link-local address"],
  ["2002:a9fe:a9fe::1", "a link-local address"],
  ["0.0.0.0", "an unspecified address"],
  ["::", "an unspecified address"],
  ["::ffff:0.0.0.0", "an unspecified address"],
  ["224.0.0.1", "a multicast address"],
  ["ff02::1", "a multicast address"],
  ["255.255.255.255", "a broadcast or reserved address"],
  ["web.test", "no IP address"],
])("%s is never connected to: it is %s", (address, what) => {
  expect(addressProblem(address, allow)).toBe(what);
  expect(addressProblem(address, deny)).toBe(what);
});

test.each(["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"])(
  "%s is connected to where this machine's own addresses are allowed",
  (address) => {
    expect(addressProblem(address, allow)).toBeUndefined();
    expect(addressProblem(address, deny)).toBe("this machine itself");
  },
);

test.each(["10.0.0.7", "192.168.1.1", "100.64.0.1", "93.184.216.34", "2001:db8::1", "fd12:3456::1", "fec0::1"])(
  "%s may be connected to",
  (address) => {
    expect(addressProblem(address, deny)).toBeUndefined();
  },
);

test.each([
  ["http://[fe80::1]/", "a link-local address"],
  ["http://0xa9fea9fe/", "a metadata service"],
  ["http://0/", "an unspecified address"],
  ["http://localhost./", "this machine itself"],
  ["http://web.localhost:81/", "this machine itself"],
  ["http://web.shop.svc/", undefined],
])("the host of %s is seen through", (url, what) => {
  expect(hostProblem(new URL(url), deny)).toBe(what);
});
