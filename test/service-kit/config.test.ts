import { describe, expect, test } from "@jest/globals";
import { ConfigError, describeSettings, readConfig } from "@runtime-cloud/service-kit/config";
import { list, port, secret, sharedSettings, wholeNumber } from "@runtime-cloud/service-kit/settings";

const settings = sharedSettings.safeExtend({
  PORT: port("the port of the API").default(7101),
  ADMIN_PORT: port("the port of the admin server").default(7102),
  PLAN_SECONDS: wholeNumber("how long a plan is good", { min: 1, max: 86_400 }).default(3_600),
  VAULT_KEY: secret("the key of the vault").min(8, { error: "is shorter than 8 characters" }),
});

const good = {
  DATABASE_URL: "postgres://app:hunter2@localhost/app",
  REDIS_URL: "redis://localhost",
  SUBSCRIBERS: "AuditService",
  VAULT_KEY: "long enough",
};
const auth = { AUTH_ISSUER: "https://id", AUTH_AUDIENCE: "runtime-cloud", AUTH_JWKS_FILE: "/etc/jwks.json" };

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(settings, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error("the configuration was expected to be refused");
}

describe("readConfig", () => {
  test("gives typed, frozen values, with defaults for what is unset or empty", () => {
    const config = readConfig(settings, { ...good, PORT: "80", SUBSCRIBERS: "a, b", LOG_LEVEL: "", UNRELATED: "x" });
    expect(config).toMatchObject({ PORT: 80, ADMIN_PORT: 7102, SUBSCRIBERS: ["a", "b"], HOST: "127.0.0.1" });
    expect(config.LOG_LEVEL).toBe("info");
    expect(config).not.toHaveProperty("UNRELATED");
    expect(Object.isFrozen(config) && Object.isFrozen(config.SUBSCRIBERS)).toBe(true);
  });

  test("refuses with every problem at once, each with the variable, its value and what it wants", () => {
    const problems = problemsOf({ PORT: "abc", PLAN_SECONDS: "0", LOG_LEVEL: "loud", VAULT_KEY: "k3y" });
    expect(problems).toHaveLength(7);
    expect(problems.join("\n")).toMatch(/^PORT="abc" is not a port from 0 to 65535; it wants: the port of the API/m);
    expect(problems.join("\n")).toMatch(/^PLAN_SECONDS="0" is not a whole number from 1 to 86400; it wants: how long/m);
    expect(problems.join("\n")).toMatch(/^LOG_LEVEL="loud" is not one of trace, debug, info, warn, error, silent/m);
    expect(problems.join("\n")).toMatch(/^DATABASE_URL is not set; it wants: postgres:\/\/user/m);
    expect(problems.join("\n")).toMatch(
      /^SUBSCRIBERS is not set; it wants: the services of this deployment that events/m,
    );
    expect(problems.join("\n")).toMatch(
      /^REDIS_URL is not set, and neither is QUEUE_DATABASE_URL: .*; it wants: redis:/m,
    );
    expect(problems.join("\n")).toMatch(/^VAULT_KEY \(value hidden\) is shorter than 8 characters/m);
  });

  test.each([
    ["EVENT_RETENTION_DAYS", "15"],
    ["INBOX_RECEIPT_RETENTION_DAYS", "37"],
  ])("refuses receipts that don't outlive the events and their parking: %s=%s", (variable, days) => {
    expect(problemsOf({ ...good, [variable]: days })).toEqual([
      expect.stringMatching(/^INBOX_RECEIPT_RETENTION_DAYS.* must be more than EVENT_RETENTION_DAYS and 30 together/),
    ]);
  });

  test("takes receipts that do", () => {
    const days = { EVENT_RETENTION_DAYS: "14", INBOX_RECEIPT_RETENTION_DAYS: "45" };
    expect(readConfig(settings, { ...good, ...days })).toMatchObject({ EVENT_RETENTION_DAYS: 14 });
  });

  test("never shows a secret, nor the password in a URL", () => {
    const message = problemsOf({ ...good, DATABASE_URL: "mysql://app:hunter2@db/app", VAULT_KEY: "k3y" }).join("\n");
    expect(message).toMatch(/DATABASE_URL \(value hidden\) is not a URL that starts with postgres:\/\//);
    expect(message).not.toMatch(/hunter2|k3y/);
  });

  test("takes queues in either place, and reports a wrong address of theirs once", () => {
    const QUEUE_DATABASE_URL = "postgres://localhost/queues";
    expect(readConfig(settings, { ...good, REDIS_URL: "", QUEUE_DATABASE_URL })).toMatchObject({ QUEUE_DATABASE_URL });
    expect(problemsOf({ ...good, REDIS_URL: "http://localhost" })).toHaveLength(1);
    expect(problemsOf({ ...good, REDIS_URL: "", QUEUE_DATABASE_URL: "redis://localhost" })).toHaveLength(1);
  });

  test.each(["HOST", "ADMIN_HOST"])("refuses %s beyond loopback without authentication", (variable) => {
    const [problem] = problemsOf({ ...good, [variable]: "0.0.0.0" });
    expect(problem).toMatch(
      new RegExp(`^${variable}="0.0.0.0" is reachable from other machines, which needs AUTH_ISSUER`),
    );
    expect(readConfig(settings, { ...good, ...auth, [variable]: "0.0.0.0" })).toMatchObject({ [variable]: "0.0.0.0" });
  });

  test.each(["127.0.0.1", "127.1.2.3", "localhost", "::1"])("takes %s for loopback", (HOST) => {
    expect(readConfig(settings, { ...good, HOST }).HOST).toBe(HOST);
  });

  test.each(["127.0.0.1.example.com", "10.0.0.1", "::", "localhost.example.com"])(
    "doesn't take %s for loopback",
    (HOST) => {
      expect(problemsOf({ ...good, HOST })).toHaveLength(1);
    },
  );

  test("refuses keys that come in clear from another machine", () => {
    const rest = { ...auth, AUTH_JWKS_FILE: "" };
    expect(problemsOf({ ...good, ...rest, AUTH_JWKS_URL: "http://id.example/jwks" })).toEqual([
      expect.stringMatching(/^AUTH_JWKS_URL \(value hidden\) fetches the keys in clear/),
    ]);
    expect(() => readConfig(settings, { ...good, ...rest, AUTH_JWKS_URL: "http://127.0.0.1:9/jwks" })).not.toThrow();
  });

  test.each([
    ["AUTH_ISSUER", { AUTH_AUDIENCE: "a", AUTH_JWKS_FILE: "f" }],
    ["AUTH_AUDIENCE", { AUTH_ISSUER: "i", AUTH_JWKS_FILE: "f" }],
    ["AUTH_JWKS_URL", { AUTH_ISSUER: "i", AUTH_AUDIENCE: "a" }],
    ["AUTH_JWKS_FILE", { ...auth, AUTH_JWKS_URL: "https://id/jwks" }],
    ["TLS_KEY_FILE", { TLS_CERT_FILE: "cert.pem" }],
    ["TLS_CERT_FILE", { TLS_KEY_FILE: "key.pem" }],
    ["SERVICE_TOKEN_FILE", { SERVICE_TOKEN: "t", SERVICE_TOKEN_FILE: "f" }],
  ])("refuses settings that only make sense together, naming %s", (variable, env) => {
    const problems = problemsOf({ ...good, ...env });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${variable}\\b`));
  });
});

describe("describeSettings", () => {
  const rows = new Map(describeSettings(settings).map((row) => [row.variable, row]));

  test("has a row for every variable, each with a description", () => {
    expect([...rows.keys()]).toEqual(Object.keys(settings.shape));
    expect([...rows.values()].filter(({ description }) => description === "")).toEqual([]);
  });

  test("says what is required and what the defaults are", () => {
    expect(rows.get("DATABASE_URL")).toMatchObject({ required: true, default: undefined });
    expect(rows.get("SUBSCRIBERS")).toMatchObject({ required: true, default: undefined });
    expect(rows.get("PORT")).toMatchObject({ required: false, default: "7101" });
    expect(rows.get("REDIS_URL")).toMatchObject({ required: false, default: undefined });
  });

  test("keeps a list's default readable", () => {
    const [row] = describeSettings(sharedSettings.safeExtend({ NAMES: list("names").default(["a", "b"]) })).slice(-1);
    expect(row).toEqual({
      variable: "NAMES",
      description: "names, separated by commas",
      default: "a,b",
      required: false,
    });
  });
});
