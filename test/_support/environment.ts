/** A variable that the global set-up gives to every test file. */
export function fromSetUp(name: SetUpVariable): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests by \`npm test\`.`);
  return value;
}

type SetUpVariable = "TEST_DATABASE_ADMIN_URL" | "TEST_TEMPLATE_PREFIX" | "TEST_REDIS_URL" | "SERVICE_BUNDLES";
