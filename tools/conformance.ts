import { fileURLToPath } from "node:url";

import { readCatalogue } from "./conformance/catalogue.ts";
import { compare } from "./conformance/compare.ts";
import { implementationOf } from "./conformance/implementation.ts";
import { report } from "./conformance/report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const comparisons = compare(await readCatalogue(), await implementationOf(root));
console.log(report(comparisons));
process.exitCode = comparisons.every(({ differences }) => differences.length === 0) ? 0 : 1;
