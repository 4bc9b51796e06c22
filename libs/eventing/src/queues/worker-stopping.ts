/** Why a job's signal aborts when its worker stops, as against a job that its queue has given to another worker. */
export class WorkerStopping extends Error {
  override readonly name = "WorkerStopping";

  constructor() {
    super("the worker is stopping");
  }
}
