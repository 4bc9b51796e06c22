/** The deployables that own a database, by the name of their folders under `services/` and `prisma/`. */
export const serviceNames = ["iac-provisioning", "execution-capacity", "runtime-environment"] as const;

export type ServiceName = (typeof serviceNames)[number];

export function isServiceName(name: string): name is ServiceName {
  return serviceNames.some((service) => service === name);
}

/** The database that a service has on a server it shares with the others: `iac_provisioning`. */
export function databaseName(service: ServiceName): string {
  return service.replaceAll("-", "_");
}
