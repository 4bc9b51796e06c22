import { runNode } from "../run.ts";
import type { Generator } from "./generator.ts";

/** Message types, enums and service descriptors of `proto/`, as TypeScript. */
export const protobuf: Generator = {
  name: "protobuf types",
  inputs: ["proto", "buf.yaml", "buf.gen.yaml", "node_modules/@bufbuild/protoc-gen-es/package.json"],
  outputs: ["libs/contracts/generated/runtimecloud"],
  async run(root) {
    await runNode(root, ["node_modules/@bufbuild/buf/bin/buf", "generate"]);
  },
};
