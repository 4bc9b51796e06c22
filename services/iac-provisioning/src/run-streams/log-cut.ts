/** A line of a run's log. */
export interface LoggedLine {
  /** Without secrets, control characters and line breaks. */
  text: string;
  /** Kept where others are left out. */
  isError: boolean;
}

/** What a run's log may have come to, in lines and in bytes of text. */
export interface LogSize {
  lines: number;
  bytes: number;
}

/** What a log keeps of what is said first, in all its phases. A phase may take half of what the ones before it left. */
const MAX_LOG: LogSize = { lines: 20_000, bytes: 16 * 1_024 * 1_024 };
/** What a phase that says more than that keeps of its end, and holds in memory until then. */
export const MAX_TAIL: LogSize = { lines: 500, bytes: 1_024 * 1_024 };
/** What it keeps of the errors in between. */
const MAX_ERRORS: LogSize = { lines: 2_000, bytes: 2 * 1_024 * 1_024 };

/**
 * Decides what a log keeps of a phase's lines, in their order: the first ones, then the errors, and the last ones, for
 * what explains a failure comes late. Where lines are left out it says so, and at the end how many.
 */
export class LogCut {
  readonly #head: Budget;
  readonly #errors = new Budget(MAX_ERRORS);
  #tail: LoggedLine[] = [];
  #tailBytes = 0;
  #isFull = false;
  #leftOut = 0;

  /** `written` is what the log has from the phases before. */
  constructor(written: LogSize) {
    const half = (most: number, used: number) => Math.floor(Math.max(0, most - used) / 2);
    this.#head = new Budget({
      lines: half(MAX_LOG.lines, written.lines),
      bytes: half(MAX_LOG.bytes, written.bytes),
    });
  }

  /** Takes the next line, and returns what to write now. */
  take(line: LoggedLine): string[] {
    if (!this.#isFull && this.#head.spend(line.text)) return [line.text];
    this.#isFull = true;
    this.#tail.push(line);
    this.#tailBytes += bytesOf(line.text);
    const written: string[] = [];
    while (this.#tail.length > MAX_TAIL.lines || this.#tailBytes > MAX_TAIL.bytes)
      written.push(...this.#giveUpOldest());
    return written;
  }

  /** Returns what is still to be written at the phase's end. */
  end(): string[] {
    const tail = this.#tail.map(({ text }) => text);
    const note = this.#leftOut > 0 ? [`(${this.#leftOut} lines are left out before these, the last ones)`] : [];
    this.#tail = [];
    this.#tailBytes = 0;
    this.#leftOut = 0;
    return [...note, ...tail];
  }

  #giveUpOldest(): string[] {
    const oldest = this.#tail.shift();
    if (!oldest) return [];
    this.#tailBytes -= bytesOf(oldest.text);
    if (oldest.isError && this.#errors.spend(oldest.text)) return [oldest.text];
    this.#leftOut += 1;
    return this.#leftOut === 1 ? [CUT] : [];
  }
}

const CUT = `(the log is cut here: of what follows, errors and the last ${MAX_TAIL.lines} lines are kept)`;

/** What may still be written. */
class Budget {
  readonly #left: LogSize;

  constructor(most: LogSize) {
    this.#left = { ...most };
  }

  /** False when the text is more than is left. */
  spend(text: string): boolean {
    const bytes = bytesOf(text);
    if (this.#left.lines < 1 || this.#left.bytes < bytes) return false;
    this.#left.lines -= 1;
    this.#left.bytes -= bytes;
    return true;
  }
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}
