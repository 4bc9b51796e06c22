import { isNativeError } from "node:util/types";
import { ConfigError } from "./config.ts";

/** An address to listen on, and the variables that it came from. */
export interface ListenAddress {
  host: string;
  port: number;
  hostVariable: string;
  portVariable: string;
}

/**
 * What `opening` opens at the address.
 *
 * @throws ConfigError naming the variable, when the address can't be listened on
 */
export async function listeningAt<T>(address: ListenAddress, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    const code = isNativeError(error) && "code" in error ? error.code : undefined;
    const problem = typeof code === "string" ? problems[code]?.(address) : undefined;
    throw problem === undefined ? error : new ConfigError([problem]);
  }
}

const noAddress = ({ host, hostVariable }: ListenAddress) =>
  `${hostVariable}="${host}" is no address of this machine: set one that is, as 127.0.0.1`;

const problems: Readonly<Record<string, (address: ListenAddress) => string>> = {
  EADDRINUSE: ({ host, port, portVariable }) =>
    `${portVariable}=${port} is taken on ${host}: stop what listens there, or set another`,
  EACCES: ({ host, port, portVariable }) =>
    `${portVariable}=${port} may not be opened on ${host} by this user: set one from 1024 on`,
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
  EAI_AGAIN: noAddress,
};
