/** Whether an error is the system's own with one of these codes (`ENOENT`). Asks for the code, not for the class. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return typeof error === "object" && error !== null && "code" in error && codes.some((code) => code === error.code);
}

export function messageOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "message" in error) return String(error.message);
  return String(error);
}
