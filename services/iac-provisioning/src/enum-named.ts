/**
 * The value of a database enum that has a proto enum value's name: `enumNamed(RunMode, RunModeCode[request.mode])`.
 * Throws for a name that isn't there: validation lets only defined values in.
 */
export function enumNamed<Value extends string>(
  values: Readonly<Record<string, Value>>,
  name: string | undefined,
): Value {
  const value = name === undefined ? undefined : values[name];
  if (value === undefined) throw new Error(`no value is named ${name}: a request got past its validation`);
  return value;
}
