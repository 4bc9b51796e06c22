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

/** For a value that validation has let in, so that it must be known. */
export function definedEnumNamed<Value extends string>(
  values: Readonly<Record<string, Value>>,
  name: string | undefined,
): Value {
  const value = enumNamed(values, name);
  if (value === undefined) throw new Error(`no value is named ${name}: a request got past its validation`);
  return value;
}
