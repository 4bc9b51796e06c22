/** The engine's binary is not there or does not answer; the message says where it was looked for and what to do. */
export class EngineUnavailable extends Error {
  override readonly name = "EngineUnavailable";
}
