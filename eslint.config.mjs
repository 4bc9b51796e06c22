import tseslint from "typescript-eslint";

import { directions } from "./tools/lint/directions.mjs";
import { bannedSyntax } from "./tools/lint/banned-syntax.mjs";

export default tseslint.config(
  { ignores: ["**/generated/", "**/node_modules/", ".data/"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      // A flag that a callback sets looks constant to this rule.
      "@typescript-eslint/no-unnecessary-condition": "off",
      "@typescript-eslint/no-unnecessary-type-arguments": "off",
      // The methods of our interfaces are functions of closures, which have no `this` to lose.
      "@typescript-eslint/unbound-method": "off",
      // A port's method may have nothing to wait for.
      "@typescript-eslint/require-await": "off",
      // A property that is named only to leave it out of the rest.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      eqeqeq: "error",
      "no-console": "error",
    },
  },
  { files: ["{tools,demo,bench,examples}/**/*.ts"], rules: { "no-console": "off" } },
  {
    // XState's types for "any machine", and Bull Board's for its router, are `any`.
    files: [
      "libs/state-machines/src/{decide,transition-table}.ts",
      "libs/eventing/src/queues/dashboard.ts",
      "test/machines/*.ts",
    ],
    rules: {
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
  ...bannedSyntax,
  ...directions,
);
