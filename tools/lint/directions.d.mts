import type { Linter } from "eslint";

/** Which part may import which, a configuration per part. */
export const directions: Linter.Config[];
