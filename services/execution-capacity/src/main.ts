import { runService } from "@runtime-cloud/eventing/run-service";
import { executionCapacity } from "./definition.ts";

await runService(executionCapacity);
