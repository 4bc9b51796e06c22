import { runService } from "@runtime-cloud/eventing/service";
import { executionCapacity } from "./definition.ts";

await runService(executionCapacity);
