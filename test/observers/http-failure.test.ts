import { expect, test } from "@jest/globals";
import { httpFailure } from "@runtime-cloud/runtime-environment/observers/http/http-failure";
import { ObservationFailed } from "@runtime-cloud/runtime-environment/observers/observer";

const withCode = (code: string) => Object.assign(new Error(`${code} 10.0.0.7:8080`), { code });

test.each([
  ["ECONNREFUSED", "connection refused"],
  ["ENOTFOUND", "its name doesn't resolve"],
  ["EAI_AGAIN", "its name doesn't resolve"],
  ["ECONNRESET", "the connection was cut"],
  ["ETIMEDOUT", "no connection in time"],
  ["EHOSTUNREACH", "its network can't be reached"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "its certificate isn't trusted"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "its certificate isn't trusted"],
  ["CERT_HAS_EXPIRED", "its certificate isn't trusted"],
  ["EPROTO", "it doesn't speak TLS"],
  ["HPE_INVALID_CONSTANT", "it doesn't answer in HTTP"],
  ["ESOMETHING", "the connection failed"],
])("%s is told as: %s", (code, text) => {
  expect(httpFailure(withCode(code)).message).toBe(text);
});

test("what an observer says by itself stays as it is", () => {
  const failure = new ObservationFailed("answers more than 64 KiB");
  expect(httpFailure(failure)).toBe(failure);
  expect(httpFailure("odd").message).toBe("the connection failed");
});
