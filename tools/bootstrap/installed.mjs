import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Whether node_modules holds what package-lock.json asks for, by the record that npm leaves of what it installed. */
export function isInstalled(root) {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const installed = packagesOf(record);
  return Object.entries(packagesOf(join(root, "package-lock.json")))
    .filter(([path]) => path.startsWith("node_modules/"))
    .every(([path, wanted]) => {
      const found = installed[path];
      // What is optional may be for another system.
      return found === undefined ? wanted.optional === true || wanted.peer === true : isSame(found, wanted);
    });
}

function isSame(found, wanted) {
  return found.version === wanted.version && found.integrity === wanted.integrity && found.link === wanted.link;
}

function packagesOf(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}
