/** A step of `npm run gen`: reads its inputs, writes its outputs, and is skipped while both are as it left them. */
export interface Generator {
  /** Names the step in its line of output and its stamp. */
  readonly name: string;
  /** Files and folders, relative to the repository, whose content decides the outputs. */
  readonly inputs: readonly string[];
  /** Files and folders, relative to the repository, that must exist for the step to be skipped. */
  readonly outputs: readonly string[];
  run(root: string): Promise<void>;
}

/** A generated file, or a folder of them, that is committed, so that it can be read without a checkout and go stale. */
export interface GeneratedDocument {
  /** Where it is written, relative to the repository. A folder holds nothing else. */
  readonly path: string;
  /** Files and folders, relative to the repository, that it is rendered from. */
  readonly inputs: readonly string[];
  /** The whole file as it should be committed; of a folder, each file by its name. */
  render(): Promise<string | ReadonlyMap<string, string>>;
}
