import type { Duration } from "@bufbuild/protobuf/wkt";
import type {
  AcquireLeaseRequest,
  ReleaseLeaseRequest,
  RenewLeaseRequest,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";

/*
 * The requests that holders send all the time, known to be good at a glance: the rules of the proto take some 30 µs to
 * evaluate, more than everything else that a session does for an operation. Each answers false rather too often than
 * true once too often, since what isn't plain goes to the rules, whose word is final; a test holds that.
 */

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const PRINTABLE = /^[\x20-\x7e]{1,128}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MAX_SECONDS = 86_399n;
const MAX_NANOS = 999_999_999;
const MAX_UNITS = 10_000;
const MAX_PRIORITY = 1_000;
const MAX_RESOURCE = 2;

export function isPlainAcquire({ poolId, selector, ttl, wait, ...request }: AcquireLeaseRequest): boolean {
  const { projectId, holderKind, holderId, units, priority, resource } = request;
  return (
    selector === undefined &&
    NAME.test(poolId) &&
    PRINTABLE.test(projectId) &&
    KIND.test(holderKind) &&
    PRINTABLE.test(holderId) &&
    isUpTo(MAX_UNITS, units) &&
    isUpTo(MAX_PRIORITY, priority) &&
    isUpTo(MAX_RESOURCE, resource) &&
    isBetween(1n, ttl) &&
    (wait === undefined || isBetween(0n, wait))
  );
}

export function isPlainRenew({ leaseId, fencingToken, ttl }: RenewLeaseRequest): boolean {
  return UUID.test(leaseId) && fencingToken > 0n && isBetween(1n, ttl);
}

export function isPlainRelease({ leaseId, fencingToken }: ReleaseLeaseRequest): boolean {
  return UUID.test(leaseId) && (fencingToken === undefined || fencingToken > 0n);
}

function isUpTo(most: number, value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= most;
}

function isBetween(fewestSeconds: bigint, duration: Duration | undefined): boolean {
  if (duration === undefined) return false;
  const { seconds, nanos } = duration;
  return seconds >= fewestSeconds && seconds <= MAX_SECONDS && nanos >= 0 && nanos <= MAX_NANOS;
}
