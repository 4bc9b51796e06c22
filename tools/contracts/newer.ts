/** Whether a version `1.2.3` is later than another; throws for one that isn't three numbers. */
export function isNewer(version: string, other: string): boolean {
  const [left, right] = [numbers(version), numbers(other)];
  const index = left.findIndex((part, at) => part !== right[at]);
  return index >= 0 && (left[index] ?? 0) > (right[index] ?? 0);
}

function numbers(version: string): number[] {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`Not a version of the form 1.2.3: ${version}`);
  return version.split(".").map(Number);
}
