/**
 * The value of a database enum that has a proto enum value's name, or undefined for a value that this version doesn't
 * know: `enumNamed(DriftKind, DriftKindCode[message.kind])`.
 */
export function enumNamed<Value extends string>(
  values: Readonly<Record<string, Value>>,
  name: string | undefined,
): Value | undefined {
  return name === undefined ? undefined : values[name];
}
