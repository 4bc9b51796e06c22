import { Unavailable } from "@runtime-cloud/service-kit/errors";

/** The promise's result, or Unavailable with `message` when it takes longer. The work itself goes on unobserved. */
export async function within<T>(ms: number, promise: Promise<T>, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Unavailable(message)), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
