export function alone(lock: string, work: () => Promise<void>): Promise<void>;
