import Sequencer from "@jest/test-sequencer";

/** What starts and ends processes takes longest. */
const LONG = ["/test/faults/", "/test/capacity-invariants/", "/test/flows/", "/test/engines/"];

/**
 * Begins with the longest files, so that a run doesn't end with one of them on one worker. Jest does that by itself
 * where it has an earlier run's times; a fresh clone has none.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const timed = sorted.every(({ duration }) => duration !== undefined);
    return timed ? sorted : sorted.sort((one, other) => rank(one) - rank(other));
  }
}

function rank({ path }) {
  const place = LONG.findIndex((folder) => path.includes(folder));
  return place === -1 ? LONG.length : place;
}
