import { v7 } from "uuid";

/** Makes the id of a new row, event or command. */
export type NewId = () => string;

/** Time-ordered UUIDs (RFC 9562), so that primary keys grow at the right edge of their index. */
export const uuidv7: NewId = () => v7();
