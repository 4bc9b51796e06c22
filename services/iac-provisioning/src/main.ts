import { runService } from "@runtime-cloud/eventing/run-service";
import { iacProvisioning } from "./definition.ts";

await runService(iacProvisioning);
