import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { type CallOptions, type Client, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { connectErrorOf, headersOf, metadataOf } from "./grpc-status.ts";

const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 100;

/**
 * Tries a call again while the other side is UNAVAILABLE. Not by grpc-js' own retry policy, which takes the headers
 * that a Connect server sends before an error for the start of an answer, and gives up.
 */
export async function untilAvailable<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (attempt === MAX_TRIES || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await wait(FIRST_BACKOFF_MS * 2 ** (attempt - 1), undefined, { signal });
    }
  }
}

export function callUnary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  request: UnaryRequest<I, O>,
  options: CallOptions,
): Promise<UnaryResponse<I, O>> {
  const { method, service, signal } = request;
  return new Promise((resolve, reject) => {
    let header = new Headers();
    let message: MessageShape<O> | undefined;
    const call = client.makeUnaryRequest(
      pathOf(method),
      serializer(method.input),
      deserializer(method.output),
      request.message,
      metadataOf(request.header),
      options,
      (error, value) => {
        signal.removeEventListener("abort", cancel);
        if (error) reject(connectErrorOf(error));
        else message = value;
      },
    );
    const cancel = () => call.cancel();
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel, { once: true });
    call.on("metadata", (metadata) => (header = headersOf(metadata)));
    // The status follows the callback; with it come the trailers.
    call.on("status", ({ metadata }: StatusObject) => {
      if (message !== undefined)
        resolve({ stream: false, service, method, header, trailer: headersOf(metadata), message });
    });
  });
}

/** All kinds of streams look the same on the wire, so one kind of call serves them. */
export async function callStream<I extends DescMessage, O extends DescMessage>(
  client: Client,
  request: StreamRequest<I, O>,
  options: CallOptions,
): Promise<StreamResponse<I, O>> {
  const { method, service, signal } = request;
  const call = client.makeBidiStreamRequest(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    metadataOf(request.header),
    options,
  );
  const cancel = () => call.cancel();
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  const trailer = new Headers();
  const head = new Promise<Headers>((resolve, reject) => {
    call.on("metadata", (metadata) => resolve(headersOf(metadata)));
    call.on("error", (error) => reject(connectErrorOf(error)));
    call.on("status", ({ metadata }: StatusObject) => {
      signal.removeEventListener("abort", cancel);
      headersOf(metadata).forEach((value, name) => trailer.append(name, value));
      resolve(new Headers());
    });
  });
  send(call, request.message, signal).catch(cancel);
  return { stream: true, service, method, header: await head, trailer, message: received(call) };
}

async function send<In, Out>(call: ClientDuplexStream<In, Out>, messages: AsyncIterable<In>, signal: AbortSignal) {
  for await (const message of messages) {
    if (!call.write(message)) await once(call, "drain", { signal });
  }
  call.end();
}

async function* received<In, Out>(call: ClientDuplexStream<In, Out>): AsyncGenerator<Out> {
  try {
    for await (const message of call) yield message;
  } catch (error) {
    throw connectErrorOf(error);
  }
}

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serializer<Desc extends DescMessage>(schema: Desc) {
  return (message: MessageShape<Desc>) => Buffer.from(toBinary(schema, message));
}

function deserializer<Desc extends DescMessage>(schema: Desc) {
  return (bytes: Buffer): MessageShape<Desc> => fromBinary(schema, bytes);
}
