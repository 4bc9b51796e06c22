import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  type LeaseOperation as LeaseOperationMessage,
  type LeaseResult,
  type LeaseSessionRequest,
  type LeaseSessionResponse,
  LeaseSessionResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { Exhausted, InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import { type Keyed, KeyedTurns } from "./keyed-turns.ts";
import type { LeaseDesk } from "../desk/lease-desk.ts";
import { messageOf } from "./lease-message.ts";
import type { LeaseNews } from "./lease-news.ts";
import type { LeaseOperation, LeaseOutcome } from "../desk/lease-operation.ts";
import type { LeaseReads } from "./lease-reads.ts";
import { type Asked, orderKey, leaseOperation, NO_OPERATION } from "./lease-request.ts";
import { failedResult, leaseResult } from "./lease-result.ts";
import type { SessionFlow } from "./session-flow.ts";

export interface SessionParts {
  asked: Asked;
  desk: LeaseDesk;
  reads: LeaseReads;
  news: LeaseNews;
  flow: SessionFlow;
  refuse: (error: unknown) => ConnectError;
}

/** Waits whose end a session tells. */
const MAX_WAITS = 10_000;
const WAITS_RETRY_MS = 1_000;

/** A session's operations on their way through the desk. Those of one key go one after the other, as do their results. */
export class SessionOperations {
  readonly #parts: SessionParts;
  readonly #turns = new KeyedTurns();
  readonly #waits = new Set<Wait>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  take({ sequence, operation: message }: LeaseSessionRequest): void {
    const step: Step = {
      key: orderKey(message) ?? `#${sequence}`,
      sequence,
      begin: () => this.#submit(step, message),
    };
    this.#turns.enter(step);
  }

  /** Follows nothing any more. */
  leave(): void {
    for (const wait of this.#waits) wait.unfollow();
    this.#waits.clear();
  }

  #submit(step: Step, message: LeaseOperationMessage | undefined): void {
    try {
      const operation = this.#read(message);
      this.#parts.desk.submit(operation).then(
        (outcome) => this.#settle(step, operation, outcome),
        (error: unknown) => this.#fail(step, error),
      );
    } catch (error) {
      this.#fail(step, error);
    }
  }

  #read(message: LeaseOperationMessage | undefined): LeaseOperation {
    if (!message) throw new InvalidInput([{ field: "operation", description: NO_OPERATION }]);
    const operation = leaseOperation(message, this.#parts.asked, "operation");
    if (operation.kind === "acquire" && operation.waitMs > 0 && this.#waits.size >= MAX_WAITS) {
      const description = `this session has its ${MAX_WAITS} acquires that wait: acquire without wait, or open another`;
      throw new Exhausted({ subject: "waits", description, retryAfterMs: WAITS_RETRY_MS });
    }
    return operation;
  }

  #settle(step: Step, { kind }: LeaseOperation, outcome: LeaseOutcome): void {
    const { lease } = outcome;
    if (lease.state !== "WAITING") {
      this.#answer(step, leaseResult(kind, outcome, messageOf(lease)));
      return;
    }
    // Followed in the turn in which it was committed, so that no later commit of this process is missed.
    const wait = kind === "acquire" ? this.#follow(step.sequence, lease) : undefined;
    this.#parts.reads.message(lease).then(
      (message) => this.#answer(step, leaseResult(kind, outcome, message), wait),
      (error: unknown) => {
        this.#drop(wait);
        this.#fail(step, error);
      },
    );
  }

  #fail(step: Step, error: unknown): void {
    this.#answer(step, failedResult(this.#parts.refuse(error)));
  }

  #answer(step: Step, result: LeaseResult, wait?: Wait): void {
    const { flow } = this.#parts;
    flow.put(response(step.sequence, result));
    if (wait) {
      wait.answered = true;
      if (wait.late) flow.putMore(wait.late);
    }
    this.#turns.done(step);
  }

  #follow(sequence: bigint, waiting: CapacityLease): Wait {
    const wait: Wait = { answered: false, late: undefined, unfollow: () => undefined };
    const told = (lease: CapacityLease) => {
      if (lease.state !== "WAITING" && this.#drop(wait)) this.#tellEnd(wait, sequence, lease);
    };
    this.#waits.add(wait);
    wait.unfollow = this.#parts.news.follow(waiting.tenantId, waiting.id, told, waiting);
    return wait;
  }

  #tellEnd(wait: Wait, sequence: bigint, lease: CapacityLease): void {
    const { reads, flow, refuse } = this.#parts;
    const tell = (result: LeaseResult) => {
      const late = response(sequence, result);
      if (wait.answered) flow.putMore(late);
      else wait.late = late;
    };
    reads.now().then(
      (now) => tell(leaseResult("acquire", { lease, now }, messageOf(lease))),
      (error: unknown) => tell(failedResult(refuse(error))),
    );
  }

  #drop(wait: Wait | undefined): boolean {
    wait?.unfollow();
    return wait !== undefined && this.#waits.delete(wait);
  }
}

function response(sequence: bigint, result: LeaseResult): LeaseSessionResponse {
  return create(LeaseSessionResponseSchema, { sequence, result });
}

interface Step extends Keyed {
  readonly sequence: bigint;
}

interface Wait {
  /** Whether the first result went out, before which the second mustn't. */
  answered: boolean;
  late: LeaseSessionResponse | undefined;
  unfollow: () => void;
}
