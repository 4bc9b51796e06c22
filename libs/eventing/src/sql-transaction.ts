/**
 * The part of a Prisma transaction that eventing writes through. Each service generates its own client; this is what
 * their transactions have in common. Tagged templates only: every value becomes a bound parameter.
 */
export interface SqlTransaction {
  $executeRaw(query: TemplateStringsArray, ...values: unknown[]): Promise<number>;
  $queryRaw<Rows>(query: TemplateStringsArray, ...values: unknown[]): Promise<Rows>;
}
