import { create, type MessageShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { StatusSchema } from "@runtime-cloud/contracts/google/rpc/status_pb";

/** An error as a part of an answer: the code, text and details that a call of its own would have ended with. */
export function statusMessage({ code, rawMessage, details }: ConnectError): MessageShape<typeof StatusSchema> {
  return create(StatusSchema, {
    code,
    message: rawMessage,
    details: details.map((detail) =>
      "desc" in detail
        ? anyPack(detail.desc, create(detail.desc, detail.value))
        : { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value },
    ),
  });
}
