import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Metadata, type ServiceError, type StatusObject } from "@grpc/grpc-js";
import { StatusSchema } from "@runtime-cloud/contracts/google/rpc/status_pb";

/** What grpc-js reports, with the details that the server packed, as Connect's clients and handlers know it. */
export function connectErrorOf(reason: unknown): ConnectError {
  if (!isServiceError(reason)) return ConnectError.from(reason, Code.Internal);
  const code = isCode(reason.code) ? reason.code : Code.Unknown;
  const packed = reason.metadata.get("grpc-status-details-bin").find((value) => Buffer.isBuffer(value));
  if (packed === undefined) {
    return new ConnectError(textOf(reason, code), code, headersOf(reason.metadata), undefined, reason);
  }
  const { message, details } = fromBinary(StatusSchema, packed);
  const error = new ConnectError(message, code, headersOf(reason.metadata), undefined, reason);
  error.details = details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value }));
  return error;
}

/** gRPC metadata as headers; binary values in base64, as Connect keeps them. */
export function headersOf(metadata: Metadata): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(metadata.toJSON())) {
    for (const value of values) headers.append(name, Buffer.isBuffer(value) ? value.toString("base64") : value);
  }
  return headers;
}

/** Headers as gRPC metadata: what HTTP itself uses stays out. */
export function metadataOf(headers: Headers): Metadata {
  const metadata = new Metadata();
  headers.forEach((value, name) => {
    if (hopByHop.has(name)) return;
    if (name.endsWith("-bin")) metadata.add(name, Buffer.from(value, "base64"));
    else metadata.add(name, value);
  });
  return metadata;
}

const hopByHop = new Set(["connection", "content-length", "content-type", "host", "te", "transfer-encoding"]);

/**
 * The status text of a call without details. grpc-js puts addresses and socket errors into the text of calls that found
 * no server: they stay in the cause.
 */
function textOf({ details }: StatusObject, code: Code): string {
  const unreachable = code === Code.Unavailable && /No connection established|Name resolution failed/.test(details);
  return unreachable ? "the service can't be reached: try again" : details.replace(leftEncoded, decodeURIComponent);
}

/** grpc-js decodes the text by `decodeURI`, which leaves URL delimiters as they were sent. */
const leftEncoded = /%(?:3B|2F|3F|3A|40|26|3D|2B|24|2C|23)/gi;

function isServiceError(reason: unknown): reason is ServiceError {
  return reason instanceof Error && "metadata" in reason && reason.metadata instanceof Metadata && "code" in reason;
}

function isCode(code: number): code is Code {
  return code in Code;
}
