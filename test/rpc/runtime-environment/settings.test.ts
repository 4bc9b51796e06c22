import { expect, test } from "@jest/globals";
import { settings } from "@runtime-cloud/runtime-environment/settings";
import { describeSettings, readConfig } from "@runtime-cloud/service-kit/config";

test("the description of PROVISIONING_URL says where it leads when it is unset", () => {
  const { PROVISIONING_URL } = readConfig(settings, {
    DATABASE_URL: "postgres://localhost/x",
    REDIS_URL: "redis://localhost",
    SUBSCRIBERS: "A",
  });
  expect(PROVISIONING_URL).toBe("http://127.0.0.1:7101");
  const described = describeSettings(settings).find(({ variable }) => variable === "PROVISIONING_URL");
  expect(described?.description).toContain(`unset: ${PROVISIONING_URL}`);
});
