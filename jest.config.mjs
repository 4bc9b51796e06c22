const MEGABYTE = 1024 * 1024;

/** @type {import("jest").Config} */
export default {
  testEnvironment: "node",
  testMatch: ["<rootDir>/{test,libs,services}/**/*.test.ts"],
  modulePathIgnorePatterns: ["<rootDir>/.data/"],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "\\.ts$": ["@swc/jest", { jsc: { target: "es2022", parser: { syntax: "typescript" } }, module: { type: "es6" } }],
  },
  // Two cores are busy with three: much of what a test does is waiting for processes.
  maxWorkers: 3,
  testSequencer: "<rootDir>/tools/longest-first.mjs",
  // Modules that a test file loads as ESM are never freed, and a large heap takes longer to leave than Jest waits.
  workerIdleMemoryLimit: 400 * MEGABYTE,
  testTimeout: 60_000,
  globalSetup: "<rootDir>/test/_support/global-setup.mjs",
  globalTeardown: "<rootDir>/test/_support/global-teardown.mjs",
  reporters: ["default", "<rootDir>/tools/test-count-reporter.mjs"],
};
