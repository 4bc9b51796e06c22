import { runService } from "@runtime-cloud/eventing/run-service";
import { runtimeEnvironment } from "./definition.ts";

await runService(runtimeEnvironment);
